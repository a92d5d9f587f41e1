"""Stages of a capture: what is attached to the training for how many steps, and what it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .clock import DeviceClock


@dataclass
class Steps:
    """Steps of one stage, in order. Lists that nothing filled stay empty."""

    wall_ns: list[int] = field(default_factory=list)
    """From the end of the step before to the end of this, without the recorder's own code."""
    device_ns: list[int] = field(default_factory=list)
    """The same on the device."""
    input_wait_ns: list[int] = field(default_factory=list)
    """Time for which training waited for its loader."""
    recorder_ns: list[int] = field(default_factory=list)
    """Time that the recorder's own code took."""
    samples: list[int] = field(default_factory=list)
    """Samples in the step's batches."""

    def as_dict(self) -> dict[str, Any]:
        """The lists that hold something."""
        return {name: values for name, values in vars(self).items() if values}


@dataclass
class Step:
    """A step that just ended."""

    wall_ns: int
    input_wait_ns: int | None
    recorder_ns: int
    samples: int | None


class Stage:
    """Some steps of a capture. Stages that attach anything to the training override this."""

    is_timed = True
    """Whether steps count by their times, so that one that is not whole does not count."""

    def __init__(self, name: str, count: int, clock: DeviceClock | None = None) -> None:
        self.name = name
        self.count = count
        self.done = 0
        self.steps = Steps()
        self._clock = clock
        self._chains: list[list[Any]] = []

    def enter(self) -> None:
        """Called before the stage's first step."""
        self.restart()

    def step(self, step: Step) -> None:
        """Called at each step's end."""
        if self._clock is not None:
            self._chains[-1].append(self._clock.mark())
        self.keep(step)

    def leave(self) -> None:
        """Called after the last step, and when the capture ends before it. It detaches all."""
        chains, self._chains = self._chains, []
        if self._clock is not None and self.done > 0:
            self._clock.settle()
            for marks in chains:
                self.steps.device_ns += self._clock.durations(marks)

    def restart(self) -> None:
        """Called where training did something else since the last step: no time runs across."""
        if self._clock is not None:
            self._chains.append([self._clock.mark()])

    def keep(self, step: Step) -> None:
        """Adds a step's times."""
        self.done += 1
        self.steps.wall_ns.append(step.wall_ns)
        self.steps.recorder_ns.append(step.recorder_ns)
        if step.input_wait_ns is not None:
            self.steps.input_wait_ns.append(step.input_wait_ns)
        if step.samples is not None:
            self.steps.samples.append(step.samples)
