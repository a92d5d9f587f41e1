"""Records what a forecast needs, from inside a training script.

    with foretrain.capture("bundle", model=model, optimizer=optimizer) as recorder:
        for batch in recorder.loader(loader):
            train(batch)
            recorder.step()

Some steps are timed with nothing attached, a few with hooks on the gradients, and a few under
PyTorch's profiler; then the recorder is done and the training goes on undisturbed. The directory
then holds what `foretrain predict bundle` and the other verbs read. Every rank writes files of its
own. Nothing in here ever stops a training.

The module itself is what is called; `from foretrain.capture import capture` gives the same.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .api import capture
from .bundle import CaptureError
from .recorder import Recorder

__all__ = ["CaptureError", "Recorder", "capture", "steps"]

steps = capture.steps


class _Callable(types.ModuleType):
    """A module that is called as `capture` is."""

    def __call__(self, *arguments: Any, **options: Any) -> Recorder:
        return capture(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
