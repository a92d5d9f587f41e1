"""`capture(...)` and `@capture.steps(...)`."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from .model import bare_optimizer
from .recorder import Recorder, Subject
from .schedule import Schedule

Function = TypeVar("Function", bound=Callable[..., Any])

_HOSTNAMES = ("hash", "plain", "omit")


class Capture:
    """Makes recorders; used through its one instance, `capture`."""

    def __call__(
        self,
        directory: str | os.PathLike[str],
        *,
        model: Any = None,
        optimizer: Any = None,
        warmup: int = 5,
        timed: int = 20,
        gradients: int = 3,
        profiler_warmup: int = 2,
        profiled: int = 3,
        execution_trace: bool = False,
        replica_batch: float | None = None,
        hostname: str = "hash",
        overwrite: bool = False,
    ) -> Recorder:
        """A recorder of a training loop that writes into `directory`.

        `model` is what the loop calls (with DDP, the wrapped model) and `optimizer` one optimiser
        or several. `warmup`, `timed`, `gradients`, `profiler_warmup` and `profiled` are the steps
        of the stages; `execution_trace` adds a step whose operators PyTorch writes down.
        `replica_batch` is the number of samples that one replica processes per step, where the
        loader does not tell. `hostname` is `hash`, `plain` or `omit`.

        Raises ImportError without PyTorch, and ValueError or TypeError for arguments that cannot
        be right. On entry the recorder raises CaptureError if another capture runs in this process,
        or if one of this rank lies in the directory and `overwrite` is false.
        """
        _need_torch()
        _check_model(model)
        _check_batch(replica_batch)
        if hostname not in _HOSTNAMES:
            raise ValueError(f"hostname is {hostname!r}; expected one of {', '.join(_HOSTNAMES)}")
        schedule = Schedule(
            warmup, timed, gradients, profiler_warmup, profiled, int(bool(execution_trace))
        )
        subject = Subject(
            directory=Path(directory).absolute(),
            model=model,
            optimizers=_listed(optimizer),
            schedule=schedule,
            replica_batch=None if replica_batch is None else float(replica_batch),
            hostname=hostname,
            overwrite=overwrite,
        )
        return Recorder(subject)

    def steps(
        self, directory: str | os.PathLike[str], **options: Any
    ) -> Callable[[Function], Function]:
        """A decorator for a function that is one step; it takes what `capture(...)` takes.

        The capture begins with the function's first call and ends by itself. A loop that is too
        short for it ends it with `function.recorder.close()`, or by the end of the program.
        """
        recorder = self(directory, **options)

        def decorate(function: Function) -> Function:
            started = False

            @functools.wraps(function)
            def step(*arguments: Any, **named: Any) -> Any:
                nonlocal started
                if not started:
                    started = True
                    recorder.start()
                if recorder.idle:
                    return function(*arguments, **named)
                try:
                    result = function(*arguments, **named)
                except BaseException as error:
                    recorder.__exit__(type(error), error, error.__traceback__)
                    raise
                recorder.step()
                return result

            step.recorder = recorder  # type: ignore[attr-defined]
            return cast(Function, step)

        return decorate


capture = Capture()


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "foretrain.capture records PyTorch training and needs PyTorch, which cannot be "
            f"imported here ({error}); install it, or capture where the training runs"
        ) from error


def _check_model(model: Any) -> None:
    if model is None:
        return
    import torch

    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; expected a torch.nn.Module")


def _check_batch(replica_batch: float | None) -> None:
    if replica_batch is None:
        return
    if isinstance(replica_batch, (bool, str, bytes)) or not hasattr(replica_batch, "__float__"):
        raise TypeError(f"replica_batch is {replica_batch!r}; expected a number of samples")
    if not math.isfinite(replica_batch) or replica_batch <= 0:
        raise ValueError(f"replica_batch is {replica_batch!r}; expected more than 0 samples")


def _listed(optimizer: Any) -> list[Any]:
    if optimizer is None:
        return []
    several = isinstance(optimizer, (list, tuple, set)) or hasattr(optimizer, "__next__")
    found = list(optimizer) if several else [optimizer]
    for one in found:
        if not hasattr(bare_optimizer(one), "param_groups"):
            kind = type(one).__name__
            raise TypeError(f"optimizer is a {kind}; expected a torch.optim.Optimizer or several")
    return found
