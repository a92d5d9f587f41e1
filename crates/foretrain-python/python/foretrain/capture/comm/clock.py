"""Clocks for calls on the processor and on CUDA or ROCm devices."""

from __future__ import annotations

import itertools
import time
from typing import Any

from .group import Call


class HostClock:
    """The processor's clock, for libraries whose calls return when they are done."""

    def blocks(self, call: Call, blocks: int, calls: int) -> list[float]:
        """Seconds per call of each of ``blocks`` runs of ``calls`` calls back to back."""
        stamps = [time.perf_counter()]
        for _ in range(blocks):
            for _ in range(calls):
                call()
            stamps.append(time.perf_counter())
        return [(end - start) / calls for start, end in itertools.pairwise(stamps)]

    def one(self, call: Call) -> float:
        """Seconds of one call."""
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


class DeviceClock:
    """Events on the device's current stream, which waits for what a call does elsewhere."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def blocks(self, call: Call, blocks: int, calls: int) -> list[float]:
        """Seconds per call of each of ``blocks`` runs of ``calls`` calls back to back."""
        marks = [self._mark()]
        for _ in range(blocks):
            for _ in range(calls):
                call()
            marks.append(self._mark())
        marks[-1].synchronize()
        # Events count milliseconds.
        return [start.elapsed_time(end) / calls / 1e3 for start, end in itertools.pairwise(marks)]

    def one(self, call: Call) -> float:
        """Seconds of one call."""
        return self.blocks(call, 1, 1)[0]

    def _mark(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def processor_seconds() -> tuple[float, float]:
    """Processor time of the process and that of threads other than this one."""
    whole = time.process_time()
    return whole, whole - time.thread_time()
