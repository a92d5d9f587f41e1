"""One rank on an emulated node: records a training alone, or measures it among others.

Not for use by hand; run.py starts it on every node.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import torch
import torch.distributed as dist
from foretrain.capture import capture
from foretrain.capture.emulate import limit
from torch.nn.parallel import DistributedDataParallel

#: Steps before those that count: DDP arranges its buckets anew after the first.
WARM_UP = 4
#: Steps without the profiler that a capture times: enough for their spread.
TIMED = 12


def main() -> None:
    """Runs the plan that the first argument names, and appends what it measures."""
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    {"record": record, "measure": measure}[plan["what"]](plan)
    dist.destroy_process_group()


def record(plan: dict[str, Any]) -> None:
    """Captures every model alone, and times it by turns alone and under DDP."""
    out = Path(plan["out"]) / os.environ["FORETRAIN_NODE"]
    out.mkdir(parents=True, exist_ok=True)
    for name in plan["models"]:
        training, step = prepare(name, None)
        wrapped = prepare(name, 25.0)[1]
        for _ in range(WARM_UP):
            step(), wrapped()
        plain, under_ddp = [], []
        # By turns, so that both meet the same machine.
        for _ in range(plan["steps"]):
            plain.append(timed(step))
            under_ddp.append(timed(wrapped))
        append(out / "steps.jsonl", {"model": name, "alone_ms": plain, "under_ddp_ms": under_ddp})
        bundle = out / f"{name}-{plan['round']}"
        stages = {"warmup": 1, "timed": TIMED, "gradients": 1, "profiler_warmup": 1}
        with capture(bundle, model=training.model, **stages) as recorder:
            while not recorder.idle:
                step()
                recorder.step()


def measure(plan: dict[str, Any]) -> None:
    """Step times of every configuration under DDP."""
    rank = dist.get_rank()
    for name, mbit, bucket in plan["configurations"]:
        step = prepare(name, bucket)[1]
        limit(mbit * 1e6)
        dist.barrier()
        for _ in range(WARM_UP):
            step()
        dist.barrier()
        steps = [timed(step) for _ in range(plan["steps"])]
        row = {"model": name, "mbit": mbit, "bucket_mb": bucket, "steps_ms": steps}
        if rank == 0:
            append(Path(plan["out"]), {"world": dist.get_world_size(), **row})
        dist.barrier()


def prepare(name: str, bucket: float | None) -> tuple[models.Training, Callable[[], None]]:
    """A model and its step, under DDP with this bucket cap in MiB if there is one."""
    made = models.training(name, seed=1 + dist.get_rank())
    model = made.model
    if bucket is not None:
        model = DistributedDataParallel(model, bucket_cap_mb=bucket)
    optimizer = made.optimizer(model)

    def step() -> None:
        made.loss(model(*made.inputs)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return made, step


def timed(step: Callable[[], None]) -> float:
    """Milliseconds of a step."""
    start = time.perf_counter()
    step()
    return round((time.perf_counter() - start) * 1e3, 3)


def append(path: Path, row: dict[str, Any]) -> None:
    """Adds a line of JSON to a file."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "a", encoding="utf-8"))
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
