"""Records what a forecast needs, from inside a training script.

    from foretrain.capture import capture

    with capture("bundle", model=model, optimizer=optimizer) as recorder:
        for batch in recorder.loader(loader):
            train(batch)
            recorder.step()

Some steps are timed with nothing attached, a few with hooks on the gradients, and a few under
PyTorch's profiler; then the recorder is done and the training goes on undisturbed. The directory
then holds what `foretrain predict bundle` and the other verbs read. Every rank writes files of its
own. Nothing in here ever stops a training.
"""

from __future__ import annotations

from .api import capture
from .bundle import CaptureError
from .recorder import Recorder

__all__ = ["CaptureError", "Recorder", "capture"]
