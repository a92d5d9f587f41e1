"""Captures of training by Lightning's `Trainer`.

from foretrain.capture.lightning import ForetrainCallback

trainer = Trainer(callbacks=[ForetrainCallback("bundle")])
"""

from __future__ import annotations

import os
import time
from typing import Any

from .api import capture
from .recorder import Recorder

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback  # type: ignore[assignment]
    except ImportError as error:
        raise ImportError(
            "foretrain.capture.lightning needs Lightning, which cannot be imported here "
            f"({error}); use foretrain.capture.capture in a loop of your own"
        ) from error


class ForetrainCallback(Callback):
    """Records one `fit` of a `Trainer`. It takes what `capture(...)` takes but the model and the
    optimisers, which it has from the trainer.

    A step is an optimiser's step: with accumulated gradients it takes several batches. Time between
    the end of a batch and the start of the next counts as waiting for input; validation and epochs'
    ends are in no step.
    """

    def __init__(self, directory: str | os.PathLike[str], **options: Any) -> None:
        # Mistakes in the options are told here, before anything is loaded.
        self._recorder: Recorder = capture(directory, **options)
        self._directory = directory
        self._options = options
        self._ended_ns: int | None = None
        self._steps = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Starts the capture with the model as it trains: wrapped by DDP, say."""
        options = dict(self._options)
        # The strategy's model is the wrapped one; without a strategy it is the module itself.
        options.setdefault("model", getattr(trainer.strategy, "model", None) or pl_module)
        options.setdefault("optimizer", list(trainer.optimizers))
        self._recorder = capture(self._directory, **options)
        self._recorder.start()
        self._steps = trainer.global_step
        self._ended_ns = time.perf_counter_ns()

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """A batch is there."""
        if self._ended_ns is not None and not self._recorder.idle:
            self._recorder.batch_arrived(time.perf_counter_ns() - self._ended_ns, batch)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Ends a step if the optimiser has stepped."""
        if trainer.global_step != self._steps:
            self._steps = trainer.global_step
            self._recorder.step()
        self._ended_ns = time.perf_counter_ns()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """What lies between epochs is no step."""
        self._restart()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Validation is no step."""
        self._restart()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Writes what there is."""
        self._recorder.__exit__(type(exception), exception, exception.__traceback__)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Ends the capture."""
        self._recorder.close()

    def _restart(self) -> None:
        self._recorder.restart_clock()
        self._ended_ns = time.perf_counter_ns()
