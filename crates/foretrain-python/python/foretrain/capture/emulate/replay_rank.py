"""One rank of a replay. Not for use by hand; :mod:`foretrain.capture.emulate.replaying` starts it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..comm.torch_group import import_torch

_WARM_UP = 3


def main() -> None:
    """Replays the plan of a file so many times; the first rank writes the steps' seconds.

    What takes a second of a recording takes ``share`` seconds of a core that nodes share.
    """
    path, steps, share, answer = sys.argv[1:5]
    plan: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    torch = import_torch()
    dist = torch.distributed
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    buckets = [_Bucket(torch, one) for one in plan["exchanges"]]
    times = []
    for number in range(_WARM_UP + int(steps)):
        start = time.perf_counter()
        _step(buckets, plan["rest"], float(share))
        if number >= _WARM_UP:
            times.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        Path(answer).write_text(json.dumps(times), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _step(buckets: list[_Bucket], rest: float, share: float) -> None:
    """Computes up to each bucket, begins its exchange, and waits for all at the end."""
    done = 0.0
    endings: list[Callable[[], None]] = []
    for bucket in buckets:
        spin((bucket.ready - done) * share)
        done = max(done, bucket.ready)
        endings.append(bucket.begin())
    for end in endings:
        end()
    spin(rest * share)


def spin(seconds: float) -> None:
    """Computes for so much processor time: who shares the core makes it last longer."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class _Bucket:
    """Gradients that are exchanged together."""

    def __init__(self, torch: Any, planned: dict[str, Any]) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self.ready: float = planned["ready"]
        self._half: bool = planned["half"]
        self._gradients = torch.zeros(max(1, planned["size"] // 4)).add_(1.0)
        self._buffer = torch.empty_like(self._gradients) if planned["copied"] else None

    def begin(self) -> Callable[[], None]:
        """Begins the exchange; what it returns waits for its end."""
        held = self._gradients
        if self._buffer is not None:
            held = self._buffer.copy_(held)
        sent = held.to(self._torch.float16) if self._half else held
        sent.div_(self._dist.get_world_size())
        work = self._dist.all_reduce(sent, async_op=True)

        def end() -> None:
            work.wait()
            if sent is not self._gradients:
                self._gradients.copy_(sent)

        return end


if __name__ == "__main__":
    main()
