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
from foretrain.capture.emulate import limit
from torch.nn.parallel import DistributedDataParallel

#: Steps before those that count: DDP arranges its buckets anew after the first.
WARM_UP = 4


def main() -> None:
    """Runs the plan that the first argument names, and appends what it measures."""
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    {"record": record, "measure": measure}[plan["what"]](plan)
    dist.destroy_process_group()


def record(plan: dict[str, Any]) -> None:
    """Step times without the profiler, alone and under DDP, and a profile, of every model."""
    out = Path(plan["out"]) / os.environ["FORETRAIN_NODE"]
    out.mkdir(parents=True, exist_ok=True)
    for name in plan["models"]:
        step, model = prepare(name, None)
        wrapped, _ = prepare(name, 25.0)
        plain, under_ddp = [], []
        for _ in range(WARM_UP):
            step(), wrapped()
        # By turns, so that both meet the same machine.
        for _ in range(plan["steps"]):
            plain.append(timed(step))
            under_ddp.append(timed(wrapped))
        row = {
            "model": name,
            "steps_ms": plain,
            "under_ddp_ms": under_ddp,
            "gradient_bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
            "buffer_bytes": sum(b.numel() * b.element_size() for b in model.buffers()),
        }
        append(out / "steps.jsonl", row)
        trace = out / f"{name}.json.gz"
        if not trace.exists():
            profile(step, trace)


def measure(plan: dict[str, Any]) -> None:
    """Step times of every configuration under DDP."""
    rank = dist.get_rank()
    for name, mbit, bucket in plan["configurations"]:
        step, _ = prepare(name, bucket)
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


def prepare(name: str, bucket: float | None) -> tuple[Callable[[], None], torch.nn.Module]:
    """A step of a model, under DDP with this bucket cap in MiB if there is one."""
    made = models.training(name, seed=1 + dist.get_rank())
    model = made.model
    if bucket is not None:
        model = DistributedDataParallel(model, bucket_cap_mb=bucket)
    optimizer = made.optimizer(model)

    def step() -> None:
        made.loss(model(*made.inputs)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, made.model


def timed(step: Callable[[], None]) -> float:
    """Milliseconds of a step."""
    start = time.perf_counter()
    step()
    return round((time.perf_counter() - start) * 1e3, 3)


def profile(step: Callable[[], None], trace: Path) -> None:
    """A profile of a few steps."""
    schedule = torch.profiler.schedule(wait=1, warmup=2, active=3, repeat=1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        record_shapes=True,
        on_trace_ready=lambda finished: finished.export_chrome_trace(str(trace)),
    ) as running:
        for _ in range(6):
            step()
            running.step()


def append(path: Path, row: dict[str, Any]) -> None:
    """Adds a line of JSON to a file."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "a", encoding="utf-8"))
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
