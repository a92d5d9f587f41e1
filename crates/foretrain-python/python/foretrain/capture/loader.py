"""Timing how long training waits for its input."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol


class Listener(Protocol):
    """What is told of every batch."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to tell any more."""

    def batch_arrived(self, waited_ns: int, batch: Any) -> None:
        """A batch came after so long a wait."""


class TimedLoader:
    """A loader whose waits are measured. It passes on everything else of the loader."""

    def __init__(self, loader: Iterable[Any], listener: Listener) -> None:
        self._loader = loader
        self._listener = listener

    def __iter__(self) -> Iterator[Any]:
        if self._listener.idle:
            return iter(self._loader)
        return self._timed()

    def _timed(self) -> Iterator[Any]:
        listener = self._listener
        started = time.perf_counter_ns()
        iterator = iter(self._loader)
        while not listener.idle:
            try:
                batch = next(iterator)
            except StopIteration:
                return
            listener.batch_arrived(time.perf_counter_ns() - started, batch)
            yield batch
            started = time.perf_counter_ns()
        yield from iterator

    def __next__(self) -> Any:
        """The next batch, of loaders that are iterators."""
        if self._listener.idle:
            return next(self._loader)  # type: ignore[call-overload]
        started = time.perf_counter_ns()
        batch = next(self._loader)  # type: ignore[call-overload]
        self._listener.batch_arrived(time.perf_counter_ns() - started, batch)
        return batch

    def __bool__(self) -> bool:
        return bool(self._loader)

    def __getitem__(self, key: Any) -> Any:
        return self._loader[key]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is not found here; dunders and the two fields are never passed on.
        if name.startswith("__") or name in ("_loader", "_listener"):
            raise AttributeError(name)
        return getattr(self._loader, name)


def samples_in(batch: Any, depth: int = 4) -> int | None:
    """Samples of a batch: the first dimension of the first tensor or array found in it."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0]) if len(shape) > 0 else None
        except (TypeError, ValueError, IndexError):
            return None
    if depth == 0:
        return None
    if isinstance(batch, Mapping):
        parts: Iterable[Any] = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    else:
        fields = getattr(batch, "__dict__", None)
        parts = fields.values() if isinstance(fields, dict) else ()
    for part in parts:
        samples = samples_in(part, depth - 1)
        if samples is not None:
            return samples
    return None
