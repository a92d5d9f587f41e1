"""A sweep of collectives over groups, operations and sizes, within a budget of time."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from .group import BETWEEN_TWO, OPERATIONS, Clock, Group, Unsupported, World
from .measure import FEWEST, Point, first_call, measure
from .quantities import size_text
from .subsets import Subset, subsets
from .table import Table

#: Columns of ``comm.csv``; times are microseconds.
COLUMNS = (
    "world",
    "bytes",
    "time_us",
    "op",
    "p10_us",
    "p90_us",
    "barriered_us",
    "barriered_p10_us",
    "barriered_p90_us",
    "n",
    "nodes",
    "cpu_us",
    "library_cpu_us",
)


@dataclass
class Plan:
    """What to measure."""

    sizes: Sequence[int]
    #: Seconds for the whole sweep.
    budget: float
    operations: Sequence[str] = OPERATIONS
    #: Numbers of ranks; all powers of two if empty.
    ranks: Sequence[int] = ()
    #: Where progress goes; nowhere if ``None``.
    progress: TextIO | None = field(default_factory=lambda: sys.stderr)


#: All-reduce is what most training waits for, so it gets this many times the others' time.
_WEIGHTS = {"all_reduce": 3.0}


@dataclass
class _Run:
    """A sweep on its way."""

    plan: Plan
    clock: Clock
    table: Table | None
    until: float
    #: Weight of the operations of all groups that are still to come.
    weight_left: float

    def slice(self, group: Group, name: str) -> float:
        """When the time of the next operation ends, by the clock of this rank."""
        now = time.monotonic()
        weight = _WEIGHTS.get(name, 1.0)
        part = weight / max(self.weight_left, weight)
        self.weight_left -= weight
        return now + group.agree(part * (self.until - now))

    def say(self, text: str) -> None:
        if self.table and self.plan.progress:
            print(text, file=self.plan.progress, flush=True)

    def skip(self, text: str) -> None:
        """Notes what was not measured, for readers of the table too."""
        self.say(text)
        if self.table:
            self.table.note(text)


def sweep(world: World, plan: Plan, table: Table | None) -> int:
    """Measures everything that fits the plan's budget; returns the number of points.

    Called by all ranks; the first one gives a ``table`` with :data:`COLUMNS`, the others ``None``.
    """
    chosen = subsets(world.nodes_of, plan.ranks)
    weight = sum(_WEIGHTS.get(name, 1.0) for s in chosen for name in _operations(plan, s))
    run = _Run(plan, world.clock(), table, time.monotonic() + plan.budget, weight)
    measured = 0
    for subset in chosen:
        group = world.subgroup(subset.ranks)
        if group:
            for name in _operations(plan, subset):
                measured += _sweep_sizes(run, group, subset, name)
        # The others wait here, with no more than one message on the way.
        world.barrier()
    return measured


def _operations(plan: Plan, subset: Subset) -> list[str]:
    two = len(subset.ranks) == 2
    return [name for name in plan.operations if two or name not in BETWEEN_TWO]


def _sweep_sizes(run: _Run, group: Group, subset: Subset, name: str) -> int:
    until = run.slice(group, name)
    sizes = run.plan.sizes
    previous: tuple[int, float] | None = None
    for done, size in enumerate(sizes):
        seconds = group.agree(until - time.monotonic())
        # What one point may take so that the larger ones get as much.
        share = max(0.0, seconds) / (len(sizes) - done)
        expected = previous[1] * size / previous[0] if previous else 0.0
        if seconds <= 0.0 or 2.5 * FEWEST * expected > seconds:
            run.skip(f"{name} of {size_text(size)} and more on {subset.describe()}: no time left")
            return done
        try:
            once, point, exact = _point(run.clock, group, name, size, share)
        except Unsupported as error:
            run.skip(str(error))
            return done
        previous = (size, once)
        if run.table:
            _record(run, run.table, name, exact, subset, point)
    return len(sizes)


def _point(
    clock: Clock, group: Group, name: str, size: int, share: float
) -> tuple[float, Point, int]:
    call, exact = group.operation(name, size)
    once = first_call(group, clock, call)
    return once, measure(group, clock, call, once, share), exact


def _record(run: _Run, table: Table, name: str, size: int, subset: Subset, point: Point) -> None:
    # A ping-pong is two messages.
    scale = 0.5e6 if name == "sendrecv" else 1e6
    usual, low, high = (seconds * scale for seconds in point.back_to_back)
    barriered, barriered_low, barriered_high = (seconds * scale for seconds in point.barriered)
    table.row(
        {
            "world": len(subset.ranks),
            "bytes": size,
            "time_us": usual,
            "op": name,
            "p10_us": low,
            "p90_us": high,
            "barriered_us": barriered,
            "barriered_p10_us": barriered_low,
            "barriered_p90_us": barriered_high,
            "n": point.calls,
            "nodes": subset.nodes,
            "cpu_us": point.processor * scale,
            "library_cpu_us": point.library_processor * scale,
        }
    )
    run.say(
        f"{name} of {size_text(size)} on {subset.describe()}: {usual:.0f} us "
        f"({low:.0f} to {high:.0f}, {point.calls} calls; {barriered:.0f} us after a barrier)"
    )
