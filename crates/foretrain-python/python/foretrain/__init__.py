"""Forecasts distributed deep-learning training from what you already have.

    import foretrain

    job = foretrain.load("traces/")
    answer = foretrain.predict(job, on="dgx-a100", gpus=[8, 64, 512])
    answer.to_pandas()

Every verb of the `foretrain` command is a function here. Its keywords are the command's options
with underscores: `--replica-batch 32` is `replica_batch=32`, and `help(foretrain.predict)` lists
them. Answers print as the command prints them, show themselves in notebooks, and hold the same
document as `--json`. Inputs that cannot be used raise `ForetrainError` with the command's words.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._errors import ForetrainError, UsageError

# Everything else is loaded when it is first used, so that an import costs next to nothing.
_FROM = {
    "Answer": "_answer",
    "Record": "_answer",
    "Job": "_job",
    "StepGraph": "_job",
    "load": "_job",
    "diagnose": "_diagnosis",
    "Diagnosis": "_diagnosis",
    "ask": "_verbs",
}
_VERBS = (
    "collectives",
    "estimate",
    "export",
    "inspect",
    "models",
    "plan",
    "predict",
    "scaling",
    "strategies",
    "validate",
    "whatif",
)
_GROUPS = ("calibrate", "fleet", "hardware", "varuna")
_MODULES = ("capture", "distributed", "plugins")

__all__ = sorted(
    ["ForetrainError", "UsageError", "__version__", *_FROM, *_VERBS, *_GROUPS, *_MODULES]
)


def __getattr__(name: str) -> Any:
    if name in _FROM:
        value = getattr(importlib.import_module(f".{_FROM[name]}", __name__), name)
    elif name in _VERBS or name in _GROUPS:
        value = importlib.import_module("._verbs", __name__).public(name)
    elif name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    elif name == "__version__":
        value = importlib.import_module("._native", __name__).__version__
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
