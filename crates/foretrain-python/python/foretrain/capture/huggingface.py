"""Captures of training by Hugging Face Transformers' `Trainer`.

from foretrain.capture.huggingface import ForetrainCallback

trainer = Trainer(model=model, args=arguments, train_dataset=data,
                  callbacks=[ForetrainCallback("bundle")])
"""

from __future__ import annotations

import os
import time
from typing import Any

from .api import capture
from .recorder import Recorder

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "foretrain.capture.huggingface needs Hugging Face Transformers, which cannot be imported "
        f"here ({error}); use foretrain.capture.capture in a loop of your own"
    ) from error


class ForetrainCallback(TrainerCallback):
    """Records one training of a `Trainer`. It takes what `capture(...)` takes but the model and
    the optimiser, which it has from the trainer.

    A step is an optimiser's step. What the trainer does between two of them - fetching batches,
    logging - counts as waiting for input; evaluating, saving and epochs' ends are in no step.
    """

    def __init__(self, directory: str | os.PathLike[str], **options: Any) -> None:
        # Mistakes in the options are told here, before anything is loaded.
        self._recorder: Recorder | None = capture(directory, **options)
        self._directory = directory
        self._options = options
        self._ended_ns: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Starts the capture with the trainer's model as it trains: wrapped by DDP, say."""
        options = dict(self._options)
        options.setdefault("model", given.get("model"))
        options.setdefault("optimizer", given.get("optimizer"))
        batch = getattr(args, "train_batch_size", None)
        if batch:
            accumulated = int(batch) * int(getattr(args, "gradient_accumulation_steps", 1))
            options.setdefault("replica_batch", accumulated)
        recorder = capture(self._directory, **options)
        recorder.start()
        self._recorder = recorder
        self._ended_ns = time.perf_counter_ns()

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """The step's batches are there."""
        if self._recorder is not None and self._ended_ns is not None:
            self._recorder.waited(time.perf_counter_ns() - self._ended_ns)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Ends a step."""
        if self._recorder is not None:
            self._recorder.step()
            self._ended_ns = time.perf_counter_ns()

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Evaluation is no step."""
        self._restart()

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Saving is no step."""
        self._restart()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Setting up an epoch is no step."""
        self._restart()

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Ends the capture. After an exception, the interpreter's end does."""
        if self._recorder is not None:
            self._recorder.close()

    def _restart(self) -> None:
        if self._recorder is not None:
            self._recorder.restart_clock()
            self._ended_ns = time.perf_counter_ns()
