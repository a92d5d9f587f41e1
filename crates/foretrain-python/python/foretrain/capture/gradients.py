"""Steps with hooks: when each gradient is ready, and when forward, backward and optimiser end."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from .clock import DeviceClock
from .model import bare_optimizer, flat_parameters, is_sharded, parameters_of
from .notes import Notes
from .parallel import find_ddp
from .stages import Stage, Step

_MOMENTS = (
    "forward_start",
    "forward_end",
    "backward_end",
    "optimizer_start",
    "optimizer_end",
    "step_end",
)


class GradientStage(Stage):
    """Attaches hooks to model, parameters and optimisers for some steps."""

    def __init__(
        self, count: int, clock: DeviceClock | None, model: Any, optimizers: list[Any], notes: Notes
    ) -> None:
        super().__init__("gradients", count, None)
        self._events = clock
        self._model = model
        self._optimizers = optimizers
        self._notes = notes
        self._handles: list[Any] = []
        self._parameters = 0
        self._ddp: Any = None
        self._is_sharded = False
        self._start: Any = 0
        self._moments: dict[str, Any] = {}
        self._ready: dict[int, Any] = {}
        self._forwards = 0
        self._synchronised = 0
        self._kept: list[tuple[Any, dict[str, Any], dict[int, Any], int, int]] = []
        self.failure: Exception | None = None

    def enter(self) -> None:
        parameters = parameters_of(self._model)
        self._parameters = len(parameters)
        self._ddp = find_ddp(self._model)
        laid_out = flat_parameters(self._model)
        self._is_sharded = bool(laid_out) or any(is_sharded(one) for _, one in parameters)
        keep = self._handles.append
        keep(self._model.register_forward_pre_hook(self._guard(self._forward_starts)))
        keep(self._model.register_forward_hook(self._guard(self._forward_ends)))
        places = {id(parameter): index for index, (_, parameter) in enumerate(parameters)}
        for index, (_, parameter) in enumerate(parameters):
            if parameter.requires_grad:
                keep(parameter.register_post_accumulate_grad_hook(self._ready_hook([index])))
        for flat in laid_out:
            # Gradients of parameters that are views come by the whole.
            views = [places[id(view)] for view in flat._params or () if id(view) in places]
            if views and flat.requires_grad:
                keep(flat.register_post_accumulate_grad_hook(self._ready_hook(views)))
        for optimizer in map(bare_optimizer, self._optimizers):
            if not hasattr(optimizer, "register_step_pre_hook"):
                self._notes.add("gradients", "the optimiser takes no hooks; its time is not told")
                continue
            keep(optimizer.register_step_pre_hook(self._guard(self._optimizer_starts)))
            keep(optimizer.register_step_post_hook(self._guard(self._optimizer_ends)))
        self._begin()

    def step(self, step: Step) -> None:
        if self.failure is not None:
            raise self.failure
        self._moments["step_end"] = self._now()
        self._kept.append(
            (self._start, self._moments, self._ready, self._forwards, self._synchronised)
        )
        self.keep(step)
        self._begin()

    def restart(self) -> None:
        self._begin()

    def leave(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self._model = self._ddp = None
        self._optimizers = []
        if self._events is not None and self._kept:
            self._events.settle()

    def summary(self) -> dict[str, Any] | None:
        """Medians over the steps, in ns after a step's start; nothing without a step."""
        if not self._kept:
            return None
        summary: dict[str, Any] = {
            "clock": "host" if self._events is None else "device",
            "steps": len(self._kept),
        }
        for moment in _MOMENTS:
            times = [
                self._since(start, moments[moment])
                for start, moments, *_ in self._kept
                if moment in moments
            ]
            if times:
                summary[f"{moment}_ns"] = round(median(times))
        ready: list[int | None] = []
        for index in range(self._parameters):
            times = [
                self._since(start, fired[index])
                for start, _, fired, *_ in self._kept
                if index in fired
            ]
            ready.append(round(median(times)) if times else None)
        summary["ready_ns"] = ready
        forwards = [entry[3] for entry in self._kept]
        if any(forwards):
            summary["forwards_per_step"] = round(median(forwards))
            # Sharded models decide unit by unit which passes they synchronise.
        if any(forwards) and not self._is_sharded:
            summary["synchronised_per_step"] = round(median(entry[4] for entry in self._kept))
        return summary

    def _begin(self) -> None:
        self._moments, self._ready = {}, {}
        self._forwards = self._synchronised = 0
        self._start = self._now()

    def _now(self) -> Any:
        return time.perf_counter_ns() if self._events is None else self._events.mark()

    def _since(self, start: Any, moment: Any) -> int:
        if self._events is None:
            return max(0, int(moment - start))
        return self._events.between(start, moment)

    def _guard(self, hook: Callable[[], None]) -> Callable[..., None]:
        """A hook that training never sees fail. Hooks must not be removed while they run, so the
        failure waits for the step's end."""

        def guarded(*_: Any) -> None:
            if self.failure is not None:
                return
            try:
                hook()
            except Exception as error:
                self.failure = error

        return guarded

    def _ready_hook(self, indices: list[int]) -> Callable[..., None]:
        def ready() -> None:
            # Of several micro-batches the last one's gradient is the one that is communicated.
            now = self._moments["backward_end"] = self._now()
            self._ready.update(dict.fromkeys(indices, now))

        return self._guard(ready)

    def _forward_starts(self) -> None:
        if not self._model.training:
            return
        self._moments.setdefault("forward_start", self._now())
        self._forwards += 1
        if self._ddp is None or self._ddp.require_backward_grad_sync:
            self._synchronised += 1

    def _forward_ends(self) -> None:
        if self._model.training:
            self._moments["forward_end"] = self._now()

    def _optimizer_starts(self) -> None:
        self._moments.setdefault("optimizer_start", self._now())

    def _optimizer_ends(self) -> None:
        self._moments["optimizer_end"] = self._now()
