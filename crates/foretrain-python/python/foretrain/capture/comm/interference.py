"""What computing and communication do to each other, for ``foretrain calibrate interference``.

Each point runs a kernel again and again alone, a collective again and again alone, and both at
once, on every rank. On GPUs the kernels run on a stream of their own; on processors in the calling thread
while the library's threads communicate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .clock import DeviceClock
from .group import Call, Clock
from .quantities import median, size_text
from .sweep import Plan
from .table import Table
from .torch_group import TorchWorld

COLUMNS = (
    "kernel",
    "kernel_bytes",
    "kernel_us",
    "kernel_beside_us",
    "op",
    "world",
    "bytes",
    "comm_us",
    "comm_beside_us",
    "device",
    "n",
)

_ELEMENT = 4
#: Sides of square matrices, and bytes of buffers that are added to.
_SIDES = {"cpu": (128, 512), "cuda": (1024, 2048, 4096)}
_BUFFERS = {"cpu": (1 << 20, 16 << 20), "cuda": (16 << 20, 256 << 20)}
#: Collectives beside which kernels run, and their sizes.
_COLLECTIVES = ("all_reduce", "all_gather")
_BYTES = {"cpu": (1 << 18, 1 << 22), "cuda": (1 << 22, 1 << 26, 1 << 28)}
#: Rounds of a point: alone and at once by turns, so that both meet the same machine.
_ROUNDS = 5


@dataclass(frozen=True)
class Kernel:
    """A piece of computing."""

    #: ``gemm`` or ``elementwise``.
    name: str
    #: What it reads and writes.
    moved: int
    call: Call


def measure(world: TorchWorld, plan: Plan, out: Path, comment: str, overwrite: bool) -> int:
    """Writes ``interference.csv`` to ``out``; called by all ranks. Returns the number of points."""
    kind = "cuda" if world.device != "cpu" else "cpu"
    kernels = _kernels(world.torch, world.place)
    points = [(k, name, size) for name in _COLLECTIVES for size in _BYTES[kind] for k in kernels]
    until = time.monotonic() + plan.budget
    clock = world.clock()
    path = out / "interference.csv"
    table = Table(path, COLUMNS, [comment], overwrite=overwrite) if world.rank == 0 else None
    done = 0
    for number, (kernel, name, size) in enumerate(points):
        left = world.agree(until - time.monotonic())
        if left <= 0.0:
            break
        collective, exact = world.operation(name, size)
        found = _point(world, clock, kernel, collective, left / (len(points) - number))
        done += 1
        if not table:
            continue
        alone, beside, comm_alone, comm_beside, runs = found
        table.row(
            {
                "kernel": kernel.name,
                "kernel_bytes": kernel.moved,
                "kernel_us": alone * 1e6,
                "kernel_beside_us": beside * 1e6,
                "op": name,
                "world": world.size,
                "bytes": exact,
                "comm_us": comm_alone * 1e6,
                "comm_beside_us": comm_beside * 1e6,
                "device": world.device,
                "n": runs,
            }
        )
        if plan.progress:
            print(
                f"{kernel.name} {size_text(kernel.moved)} beside {name} of {size_text(exact)}: "
                f"{beside / alone:.2f} times as long; the {name} {comm_beside / comm_alone:.2f}",
                file=plan.progress,
                flush=True,
            )
    if table:
        table.close()
        print(f"{done} points in {path}", file=sys.stderr)
    return done


def _kernels(torch: Any, device: Any) -> list[Kernel]:
    kernels = []
    for side in _SIDES[device.type]:
        first, second = (torch.randn(side, side, device=device) for _ in range(2))
        result = torch.empty_like(first)
        call = partial(torch.mm, first, second, out=result)
        kernels.append(Kernel("gemm", 3 * side * side * _ELEMENT, call))
    for size in _BUFFERS[device.type]:
        first, second = (torch.randn(size // _ELEMENT, device=device) for _ in range(2))
        kernels.append(Kernel("elementwise", 3 * size, partial(first.add_, second)))
    return kernels


Found = tuple[float, float, float, float, int]


def _point(
    world: TorchWorld, clock: Clock, kernel: Kernel, collective: Call, seconds: float
) -> Found:
    """Kernel alone and beside, collective alone and beside, and runs of the kernel."""
    kernel.call()
    collective()
    world.barrier()
    once = max(world.greatest([clock.one(collective)])[0], 1e-6)
    # Three parts of each round take about as long as each other.
    calls = int(world.agree(max(1, min(200, seconds / (3 * _ROUNDS * once)))))
    short = max(world.greatest([clock.one(kernel.call)])[0], 1e-7)
    runs = int(world.agree(max(3, min(2000, calls * once / short))))
    kernels, kernels_beside, comms, comms_beside = [], [], [], []
    for _ in range(_ROUNDS):
        world.barrier()
        kernels.append(clock.blocks(kernel.call, 1, runs)[0])
        world.barrier()
        comms.append(clock.blocks(collective, 1, calls)[0])
        world.barrier()
        beside, comm_beside = _both(world, kernel, collective, calls)
        kernels_beside.append(beside)
        comms_beside.append(comm_beside)
    found = [median(times) for times in (kernels, kernels_beside, comms, comms_beside)]
    slowest = world.greatest(found)
    return slowest[0], slowest[1], slowest[2], slowest[3], runs * _ROUNDS


def _both(world: TorchWorld, kernel: Kernel, collective: Call, calls: int) -> tuple[float, float]:
    if world.device == "cpu":
        return _both_on_host(kernel, collective, calls)
    return _both_on_device(world, kernel, collective, calls)


def _both_on_host(
    kernel: Kernel, collective: Callable[..., Any], calls: int
) -> tuple[float, float]:
    """Kernels in this thread until the library's threads are done with a collective.

    A thread of Python that waited for each would contend with this one for the interpreter, which a
    training's backward pass does not.
    """
    runs = 0
    start = time.perf_counter()
    for _ in range(calls):
        work = collective(async_op=True)
        while not work.is_completed():
            kernel.call()
            runs += 1
        work.wait()
    took = time.perf_counter() - start
    return took / max(1, runs), took / calls


def _both_on_device(
    world: TorchWorld, kernel: Kernel, collective: Call, calls: int
) -> tuple[float, float]:
    """Kernels on a stream of their own, begun with the collectives and queued for as long."""
    torch = world.torch
    clock = DeviceClock(torch)
    once = clock.one(collective)
    runs = max(3, int(0.8 * calls * once / max(clock.one(kernel.call), 1e-6)))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    with torch.cuda.stream(stream):
        marks[0].record()
        for _ in range(runs):
            kernel.call()
        marks[1].record()
    comm = clock.blocks(collective, 1, calls)[0]
    marks[1].synchronize()
    return marks[0].elapsed_time(marks[1]) / runs / 1e3, comm
