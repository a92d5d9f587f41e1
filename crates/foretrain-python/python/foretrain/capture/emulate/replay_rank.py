"""One rank of a replay. Not for use by hand; :mod:`foretrain.capture.emulate.replay` starts it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..comm.quantities import median
from ..comm.torch_group import import_torch

_WARM_UP = 3
#: Exchanges of a bucket alone, of which the median counts.
_ALONE = 5


def main() -> None:
    """Replays the plan that the first argument names; the first rank writes the answer."""
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch = import_torch()
    dist = torch.distributed
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    exchanges = _Exchanges(torch, plan)
    alone = exchanges.alone()
    times = []
    for number in range(_WARM_UP + plan["steps"]):
        start = time.perf_counter()
        exchanges.step()
        if number >= _WARM_UP:
            times.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        answer = {"steps": times, "exchanges": alone}
        Path(plan["answer"]).write_text(json.dumps(answer), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def spin(seconds: float) -> None:
    """Computes for so much processor time: who shares the core makes it last longer."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class _Exchanges:
    """The buckets of a step."""

    def __init__(self, torch: Any, plan: dict[str, Any]) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self._rest: float = plan["rest"]
        self._half: bool = plan["half"]
        self._buckets = [
            (ready, torch.zeros(max(1, size // 4)).add_(1.0)) for ready, size in plan["buckets"]
        ]

    def step(self) -> None:
        """Computes up to each bucket, begins its exchange, and waits for all at the end."""
        done = 0.0
        endings: list[Callable[[], None]] = []
        for ready, buffer in self._buckets:
            spin(ready - done)
            done = ready
            endings.append(self._begin(buffer))
        for end in endings:
            end()
        spin(self._rest)

    def alone(self) -> list[float]:
        """Seconds of each bucket's exchange without computing; the slowest rank's."""
        found = []
        for _, buffer in self._buckets:
            times = []
            for _ in range(_ALONE):
                self._dist.barrier()
                start = time.perf_counter()
                self._begin(buffer)()
                times.append(time.perf_counter() - start)
            slowest = self._torch.tensor([median(times)], dtype=self._torch.float64)
            self._dist.all_reduce(slowest, op=self._dist.ReduceOp.MAX)
            found.append(float(slowest[0]))
        return found

    def _begin(self, buffer: Any) -> Callable[[], None]:
        """Begins an exchange; what it returns waits for its end."""
        world = self._dist.get_world_size()
        sent = buffer.to(self._torch.float16) if self._half else buffer
        sent.div_(world)
        work = self._dist.all_reduce(sent, async_op=True)

        def end() -> None:
            work.wait()
            if self._half:
                buffer.copy_(sent)

        return end


if __name__ == "__main__":
    main()
