"""What copying, summing and shrinking buffers takes, for ``foretrain calibrate primitives``.

Figures of processors are processor time of one thread, those of GPUs time on the device. The
operations
and schemes are those of docs/primitives.md; a scheme that PyTorch has no operation for is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .clock import DeviceClock
from .group import Call
from .quantities import median
from .table import Table

COLUMNS = ("operation", "bytes", "time_us")
COPY_COLUMNS = ("operation", "bytes", "time_us", "gb_per_s")

_ELEMENT = 4
#: Repeats of a size at least and at most.
_FEWEST, _MOST = 3, 30
#: Buffers are taken in turn from this much memory, so that none is in a cache when its turn comes.
_POOL_BYTES = 64 << 20
#: Part of the elements that top-k keeps.
_KEPT = 0.01


def measure(
    torch: Any,
    device: Any,
    sizes: Sequence[int],
    budget: float,
    out: Path,
    comment: str,
    overwrite: bool,
) -> None:
    """Writes ``primitives.csv``, and on GPUs ``copies.csv`` between host and device, to ``out``."""
    until = time.monotonic() + budget
    makers = _makers(torch, device)
    points = [(size, name) for size in sizes for name in makers]
    path = out / "primitives.csv"
    with Table(path, COLUMNS, [comment], overwrite=overwrite) as table:
        for done, (size, name) in enumerate(points):
            left = max(0.0, until - time.monotonic())
            calls = makers[name](max(1, size // _ELEMENT))
            for seconds in _times(torch, device, calls, left / (len(points) - done)):
                row = {"operation": name, "bytes": max(_ELEMENT, size // _ELEMENT * _ELEMENT)}
                table.row({**row, "time_us": seconds * 1e6})
    print(f"{table.rows} times in {path}", file=sys.stderr)
    if device.type == "cuda":
        _copies(torch, device, sizes, budget / 3.0, out, comment, overwrite)


Maker = Callable[[int], Iterator[Call]]


def _makers(torch: Any, device: Any) -> dict[str, Maker]:
    """By operation a function that gives calls on one buffer after the other."""

    def pool(elements: int) -> list[Any]:
        count = max(2, _POOL_BYTES // (elements * _ELEMENT))
        return [torch.randn(elements, device=device) for _ in range(min(count, 64))]

    def in_turn(buffers: list[Any], call: Callable[[Any, Any], object]) -> Iterator[Call]:
        at = 0
        while True:
            first, second = buffers[at % len(buffers)], buffers[(at + 1) % len(buffers)]
            yield partial(call, first, second)
            at += 2

    def aggregate(elements: int) -> Iterator[Call]:
        return in_turn(pool(elements), lambda a, b: a.add_(b))

    def copy(elements: int) -> Iterator[Call]:
        return in_turn(pool(elements), lambda a, b: a.copy_(b))

    def encode_half(elements: int) -> Iterator[Call]:
        half = torch.empty(elements, dtype=torch.float16, device=device)
        return in_turn(pool(elements), lambda a, _: half.copy_(a))

    def decode_half(elements: int) -> Iterator[Call]:
        half = torch.randn(elements, device=device).to(torch.float16)
        return in_turn(pool(elements), lambda a, _: a.copy_(half))

    def kept(elements: int) -> int:
        return max(1, int(elements * _KEPT))

    def encode_top(elements: int) -> Iterator[Call]:
        def call(gradient: Any, _: Any) -> object:
            places = gradient.abs().topk(kept(elements), sorted=False).indices
            return gradient[places]

        return in_turn(pool(elements), call)

    def decode_top(elements: int) -> Iterator[Call]:
        places = torch.randperm(elements, device=device)[: kept(elements)]
        values = torch.randn(kept(elements), device=device)
        return in_turn(pool(elements), lambda a, _: a.zero_().index_copy_(0, places, values))

    return {
        "aggregate": aggregate,
        "copy": copy,
        "encode half": encode_half,
        "decode half": decode_half,
        "encode top-k": encode_top,
        "decode top-k": decode_top,
    }


def _times(torch: Any, device: Any, calls: Iterator[Call], seconds: float) -> list[float]:
    """Seconds of single calls, after one that warms up."""
    next(calls)()
    until = time.monotonic() + seconds
    times: list[float] = []
    clock = DeviceClock(torch) if device.type == "cuda" else None
    while len(times) < _FEWEST or (len(times) < _MOST and time.monotonic() < until):
        call = next(calls)
        if clock:
            times.append(clock.one(call))
        else:
            start = time.thread_time()
            call()
            times.append(time.thread_time() - start)
    # The clock of a thread may have a coarse grain.
    return [found for found in times if found > 0.0]


def _copies(
    torch: Any,
    device: Any,
    sizes: Sequence[int],
    budget: float,
    out: Path,
    comment: str,
    overwrite: bool,
) -> None:
    """Copies between pinned host memory and the device, and within the device."""
    until = time.monotonic() + budget
    with Table(out / "copies.csv", COPY_COLUMNS, [comment], overwrite=overwrite) as table:
        for done, size in enumerate(sizes):
            host = torch.empty(size, dtype=torch.uint8).pin_memory()
            here = torch.empty(size, dtype=torch.uint8, device=device)
            there = torch.empty(size, dtype=torch.uint8, device=device)
            pairs = (
                ("host-to-device", here, host),
                ("device-to-host", host, here),
                ("device-to-device", there, here),
            )
            share = max(0.0, until - time.monotonic()) / (len(sizes) - done) / len(pairs)
            for name, to, source in pairs:
                usual = median(_times(torch, device, _again(to, source), share))
                row = {"operation": name, "bytes": size, "time_us": usual * 1e6}
                table.row({**row, "gb_per_s": size / usual / 1e9})


def _again(to: Any, source: Any) -> Iterator[Call]:
    while True:
        yield partial(to.copy_, source, non_blocking=True)
