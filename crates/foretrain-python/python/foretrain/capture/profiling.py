"""Steps under the profiler, and steps under the observer of execution traces."""

from __future__ import annotations

from typing import Any

from .bundle import Bundle
from .stages import Stage, Step


class ProfileStage(Stage):
    """Runs the profiler over some steps, the first of which it does not record."""

    is_timed = False

    def __init__(self, warmup: int, active: int, bundle: Bundle) -> None:
        super().__init__("profile", warmup + active, None)
        self._warmup = warmup
        self._active = active
        self._bundle = bundle
        self._profiler: Any = None
        self._fragment: str | None = None
        self.written = False

    def enter(self) -> None:
        from torch import autograd, profiler

        if autograd._profiler_enabled():  # type: ignore[attr-defined]
            # Kineto would cancel the other's trace in favour of ours.
            raise RuntimeError("another profiler is running")
        activities = profiler.supported_activities()  # type: ignore[no-untyped-call]
        self._profiler = profiler.profile(
            activities=activities,
            schedule=profiler.schedule(wait=0, warmup=self._warmup, active=self._active, repeat=1),
            on_trace_ready=self._export,
            record_shapes=True,
        )
        self._profiler.start()

    def step(self, step: Step) -> None:
        if self.done < self._warmup:
            self.done += 1
        else:
            self.keep(step)
        self._profiler.step()

    def restart(self) -> None:
        """The profiler's times need no start."""

    def leave(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            if self.done < self.count:
                # The profiler marks what has only begun as a step like any other.
                self._fragment = f"ProfilerStep#{profiler.step_num}"
            # Writes what was recorded if the capture ends within the window.
            profiler.stop()

    def _export(self, profiler: Any) -> None:
        # A trace without one whole step would only be refused by readers.
        if self.written or not self.steps.wall_ns:
            return
        plain = self._bundle.scratch("trace.json")
        try:
            profiler.export_chrome_trace(str(plain))
            renamed = {} if self._fragment is None else {self._fragment: "unfinished step"}
            self._bundle.pack(plain, self._bundle.trace, renamed)
        finally:
            plain.unlink(missing_ok=True)
        self.written = True


class ExecutionStage(Stage):
    """Lets PyTorch write down every operator with its tensors. It slows steps several times."""

    is_timed = False

    def __init__(self, count: int, bundle: Bundle) -> None:
        super().__init__("execution", count, None)
        self._bundle = bundle
        self._observer: Any = None
        self._plain = bundle.scratch("execution.json")
        self.written = False

    def enter(self) -> None:
        from torch.profiler import ExecutionTraceObserver

        self._observer = ExecutionTraceObserver()
        self._observer.register_callback(str(self._plain))
        self._observer.start()

    def step(self, step: Step) -> None:
        self.keep(step)

    def restart(self) -> None:
        """An execution trace holds no times."""

    def leave(self) -> None:
        observer, self._observer = self._observer, None
        if observer is None:
            return
        try:
            observer.stop()
            observer.unregister_callback()
            if self.done > 0:
                if not self._plain.exists():
                    # There is one observer per process, and PyTorch does not say that it is taken.
                    raise RuntimeError("PyTorch wrote none; is another observer registered?")
                self._bundle.pack(self._plain, self._bundle.execution)
                self.written = True
        finally:
            self._plain.unlink(missing_ok=True)
