"""How many steps each stage of a capture takes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Schedule:
    """Steps of each stage, in the order in which the stages follow each other.

    Every number may be zero, which leaves the stage out.
    """

    warmup: int = 5
    """Steps passed over: allocators settle, and DDP rebuilds its buckets after the first."""
    timed: int = 20
    """Steps timed with nothing attached. They are what predictions are held against."""
    gradients: int = 3
    """Steps with hooks on the gradients."""
    profiler_warmup: int = 2
    """Steps for which the profiler runs without recording."""
    profiled: int = 3
    """Steps in the profiler's trace."""
    execution: int = 0
    """Steps in the execution trace."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            # Integers of numpy stand for themselves.
            steps = -1 if isinstance(value, bool) or not hasattr(value, "__index__") else value
            if operator.index(steps) < 0:
                raise ValueError(
                    f"{field.name} is {value!r}; expected a number of steps, 0 or more"
                )
            object.__setattr__(self, field.name, operator.index(steps))

    def as_dict(self) -> dict[str, int]:
        """The numbers by the names that capture files use."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
