"""The recorder: leads a training loop through the stages of a capture.

Training comes first. Whatever fails in here is noted, told once as a warning, and ends the capture;
the training goes on as if it had never been recorded.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from . import facts
from .bundle import Bundle, CaptureError
from .clock import device_clock, device_type_of
from .gradients import GradientStage
from .loader import TimedLoader, samples_in
from .machine import host_for
from .notes import Notes, describe
from .profiling import ExecutionStage, ProfileStage
from .ranks import Place, place
from .schedule import Schedule
from .stages import Stage, Step


@dataclass
class Subject:
    """What is captured and how."""

    directory: Path
    model: Any
    optimizers: list[Any]
    schedule: Schedule
    replica_batch: float | None
    hostname: str
    overwrite: bool


class Recorder:
    """Records a training loop. Made by `capture()`; a context manager.

    `step()` ends a step, and `loader()` wraps the loop's loader so that waiting for input is known.
    Once the last stage is over, all hooks are off, the files are written, and both do nothing.
    """

    def __init__(self, subject: Subject) -> None:
        self.notes = Notes()
        self._subject: Subject | None = subject
        self._process = os.getpid()
        self._place: Place | None = None
        self._bundle: Bundle | None = None
        self._facts: dict[str, Any] | None = None
        self._stages: list[Stage] = []
        self._current = -1
        self._stage: Stage | None = None
        self._started_ns = 0
        self._own_ns = 0
        self._waited_ns: int | None = None
        self._samples: int | None = None
        self._cut = False

    # What a training script uses.

    def __enter__(self) -> Recorder:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._stage is not None:
            # Its message may say anything, so the kind alone is kept.
            self.notes.add(self._stage.name, f"the training loop ended by {type(error).__name__}")
        self.close()

    def step(self) -> None:
        """Ends a step: everything since the last call, or since the start, belonged to it."""
        stage = self._stage
        # A forked child is another program.
        if stage is None or os.getpid() != self._process:
            return
        ended = time.perf_counter_ns()
        try:
            if self._cut and stage.is_timed:
                stage.restart()
            else:
                took = ended - self._started_ns
                stage.step(Step(took, self._waited_ns, self._own_ns, self._samples))
            if stage.done >= stage.count:
                self._next()
        except Exception as error:
            self._fail(error)
        self._waited_ns = self._samples = None
        self._cut = False
        self._started_ns = time.perf_counter_ns()
        self._own_ns = self._started_ns - ended

    def loader(self, loader: Iterable[Any]) -> Any:
        """The loader, with the waits for its batches measured and their samples counted."""
        return TimedLoader(loader, self)

    def restart_clock(self) -> None:
        """Says that training did something else since the last step, as an evaluation or a
        checkpoint: the next step begins now. A step of which batches have come already is not
        counted, as only a part of it would be."""
        if self._stage is None or os.getpid() != self._process:
            return
        if self._samples is not None or self._waited_ns is not None:
            self._cut = True
        try:
            self._stage.restart()
        except Exception as error:
            self._fail(error)
        self._waited_ns = self._samples = None
        self._started_ns = time.perf_counter_ns()

    def close(self) -> None:
        """Ends the capture and writes what was recorded. Does nothing if it has ended."""
        if self._subject is None:
            return
        stage, self._stage = self._stage, None
        # A forked child that ends must not write its parent's capture.
        if os.getpid() == self._process:
            if stage is not None:
                self._guarded(stage.name, stage.leave)
            self._guarded("writing", self._write)
        self._release()

    @property
    def idle(self) -> bool:
        """Whether the capture has ended; the recorder does nothing any more."""
        return self._stage is None

    # What adapters to training libraries use as well.

    def start(self) -> None:
        """Begins the capture; without a `with` block, `close()` or the interpreter's end ends it.

        Raises CaptureError where a capture runs already or one of this rank lies in the directory.
        """
        subject = self._subject
        if subject is None or self._current >= 0:
            raise CaptureError("this capture has been used; make another with capture(...)")
        facts.claim(self, subject.directory)
        try:
            self._begin(subject)
        except CaptureError:
            self._release()
            raise
        except Exception as error:
            self.notes.warn("start", f"nothing is recorded: {describe(error)}")
            self.close()
        else:
            atexit.register(self.close)

    def batch_arrived(self, waited_ns: int, batch: Any) -> None:
        """Counts a wait for input and the samples that came."""
        entered = time.perf_counter_ns()
        try:
            self.waited(waited_ns)
            samples = samples_in(batch)
            if samples is not None:
                self._samples = (self._samples or 0) + samples
        except Exception as error:
            self._fail(error)
        self._own_ns += time.perf_counter_ns() - entered

    def waited(self, nanos: int) -> None:
        """Counts time that the running step waited for input."""
        self._waited_ns = (self._waited_ns or 0) + max(0, nanos)

    # How a capture goes on.

    def _begin(self, subject: Subject) -> None:
        self._place = place()
        bundle = Bundle(subject.directory, self._place.rank, host_for(subject.hostname))
        bundle.prepare(subject.overwrite)
        self._bundle = bundle
        self._stages = self._plan(subject, bundle)
        self._next()
        self._started_ns = time.perf_counter_ns()

    def _plan(self, subject: Subject, bundle: Bundle) -> list[Stage]:
        asked, model = subject.schedule, subject.model
        clock = device_clock(device_type_of(model))
        stages = [Stage("warmup", asked.warmup), Stage("timed", asked.timed, clock)]
        if model is not None:
            optimizers = subject.optimizers
            stages.append(GradientStage(asked.gradients, clock, model, optimizers, self.notes))
        elif asked.gradients:
            self.notes.add("gradients", "no model was given, so gradients are not watched")
        if asked.profiled:
            stages.append(ProfileStage(asked.profiler_warmup, asked.profiled, bundle))
        stages.append(ExecutionStage(asked.execution, bundle))
        return [stage for stage in stages if stage.count > 0]

    def _next(self) -> None:
        """Leaves the stage that is over and enters the next; after the last, ends the capture."""
        if self._stage is not None:
            stage, self._stage = self._stage, None
            stage.leave()
            if stage.name == "timed":
                self._gather()
        self._current += 1
        if self._current >= len(self._stages):
            self.close()
            return
        # Set first, so that a stage that fails while it attaches itself is detached again.
        self._stage = self._stages[self._current]
        self._stage.enter()

    def _gather(self) -> None:
        """Takes down the facts while model and process groups live: right after the timed steps,
        when DDP has its final buckets and nothing has been attached yet."""
        if self._facts is None and self._subject is not None:
            self._facts = facts.gather(self._subject, self.notes)

    def _fail(self, error: Exception) -> None:
        running = 0 <= self._current < len(self._stages)
        name = self._stages[self._current].name if running else "capture"
        self.notes.warn(name, f"{describe(error)}; the capture ends here, the training goes on")
        self.close()

    def _guarded(self, about: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self.notes.warn(about, describe(error))

    def _write(self) -> None:
        if self._bundle is None or self._subject is None or self._place is None:
            return
        self._gather()
        now = place()
        if now.rank != self._place.rank:
            # The process group was made within the capture.
            self.notes.add("rank", f"was {self._place.rank} at the start, by {self._place.source}")
            self._bundle = facts.move(self._bundle, now.rank, self._subject.overwrite)
        document = facts.document(
            self._subject, now, self._bundle, self._stages, self._facts or {}, self.notes
        )
        self._bundle.write_capture(document)

    def _release(self) -> None:
        """Lets go of the model and all else, so that a finished recorder costs no memory."""
        facts.disclaim(self)
        atexit.unregister(self.close)
        self._stage = self._subject = self._facts = None
        self._stages = []
