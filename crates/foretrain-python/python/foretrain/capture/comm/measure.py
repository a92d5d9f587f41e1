"""One point of a sweep: an operation of one size on one group."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import processor_seconds
from .group import Call, Clock, Group
from .quantities import median, quantile

#: Calls of a point at least and at most, each way.
FEWEST, MOST = 3, 200
#: A block of short calls takes this long, so that reading the clock and one late wake-up do not
#: count.
BLOCK_SECONDS = 2e-3
#: Part of a point's time for calls with a barrier before each.
BARRIERED_PART = 0.3


@dataclass(frozen=True)
class Point:
    """Seconds per call; of several ranks the slowest's."""

    #: Median, p10 and p90 over blocks of calls back to back.
    back_to_back: tuple[float, float, float]
    #: The same over single calls with a barrier before each.
    barriered: tuple[float, float, float]
    #: Calls back to back.
    calls: int
    #: Processor time of a rank per call back to back, and what of it other threads than the
    #: calling one took: the library's own.
    processor: float
    library_processor: float


def first_call(group: Group, clock: Clock, call: Call) -> float:
    """Seconds of a second call, which tells how many fit; the first one warms up."""
    call()
    group.barrier()
    return group.greatest([clock.one(call)])[0]


def measure(group: Group, clock: Clock, call: Call, once: float, seconds: float) -> Point:
    """Measures a call that takes about ``once`` for about ``seconds``."""
    once = max(once, 1e-7)
    total = int(group.agree(_count(once, seconds * (1.0 - BARRIERED_PART))))
    # Longer than the call itself: a barrier is a collective too.
    barriered = int(group.agree(_count(2.0 * once, seconds * BARRIERED_PART)))
    per_block = max(1, min(total // FEWEST, int(BLOCK_SECONDS / once)))
    group.barrier()
    before = processor_seconds()
    blocks = clock.blocks(call, total // per_block, per_block)
    after = processor_seconds()
    calls = total // per_block * per_block
    processor = [(end - start) / calls for start, end in zip(before, after, strict=True)]
    single = []
    for _ in range(barriered):
        group.barrier()
        single.append(clock.one(call))
    # A call ends when its last rank has the result, so single calls count by their slowest rank.
    # Calls back to back are not aligned over ranks: there only a rank's quantiles mean anything.
    slowest = group.greatest(single)
    summary = group.greatest([*_summary(blocks), *processor])
    return Point(
        back_to_back=(summary[0], summary[1], summary[2]),
        barriered=_summary(slowest),
        calls=calls,
        processor=summary[3],
        library_processor=summary[4],
    )


def _count(once: float, seconds: float) -> int:
    return max(FEWEST, min(MOST, int(seconds / once)))


def _summary(values: list[float]) -> tuple[float, float, float]:
    return median(values), quantile(values, 0.1), quantile(values, 0.9)
