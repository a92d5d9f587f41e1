"""What a sweep needs of a communication library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

#: Something to time; what it returns is of no interest.
Call = Callable[[], object]

#: Operations of a sweep, in the order in which they are measured. ``sendrecv`` is a ping-pong,
#: timed one way; ``send`` streams one way without answers.
OPERATIONS: tuple[str, ...] = (
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "all_to_all",
    "sendrecv",
    "send",
)

#: Operations of two ranks only.
BETWEEN_TWO = frozenset({"sendrecv", "send"})


class SweepError(Exception):
    """A sweep cannot begin or go on; the message says why and what to do."""


class Unsupported(Exception):
    """The library has no such operation."""


class Group(Protocol):
    """Some ranks that communicate. Every method is called by all of them, in the same order."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Waits for everybody."""

    def agree(self, value: float) -> float:
        """The first rank's value."""

    def greatest(self, values: Sequence[float]) -> list[float]:
        """The largest value over the ranks, place by place."""

    def operation(self, name: str, size: int) -> tuple[Call, int]:
        """One of :data:`OPERATIONS` on buffers of about ``size`` bytes, and the exact size: the
        larger of a rank's input and output. Raises :class:`Unsupported`."""


class World(Group, Protocol):
    """All ranks."""

    library: str
    device: str
    node: int
    nodes_of: list[int]

    def subgroup(self, ranks: Sequence[int]) -> Group | None:
        """A group of these ranks; ``None`` on ranks that are not among them."""

    def clock(self) -> Clock:
        """The clock to time calls with."""

    def close(self) -> None:
        """Ends communication."""


class Clock(Protocol):
    """Times calls on the device that does them."""

    def blocks(self, call: Call, blocks: int, calls: int) -> list[float]:
        """Seconds per call of each of ``blocks`` runs of ``calls`` calls back to back."""

    def one(self, call: Call) -> float:
        """Seconds of one call from its start to its end on the device."""
