"""What went wrong in a capture, kept for the capture file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_MOST = 100
"""Notes kept; a hook that fails must not fill the file."""


class Notes:
    """Notes by the part of the capture that they are about."""

    def __init__(self) -> None:
        self._entries: list[dict[str, str]] = []
        self._warned = False

    def add(self, about: str, message: str) -> None:
        """Keeps a note; the same note is kept once."""
        entry = {"about": about, "message": message}
        if len(self._entries) < _MOST and entry not in self._entries:
            self._entries.append(entry)

    def attempt(self, about: str, gather: Callable[[], T]) -> T | None:
        """What `gather` returns; if it fails, nothing and a note."""
        try:
            return gather()
        except Exception as error:
            self.add(about, describe(error))
            return None

    def warn(self, about: str, message: str) -> None:
        """Keeps a note and tells the user, but only of the first."""
        self.add(about, message)
        if self._warned:
            return
        self._warned = True
        try:
            warnings.warn(f"foretrain capture, {about}: {message}", RuntimeWarning, stacklevel=4)
        except RuntimeWarning:
            # Under `-W error` a warning is an exception, and that must not reach the training.
            pass

    def as_list(self) -> list[dict[str, Any]]:
        """The notes in the order in which they came."""
        return list(self._entries)


def describe(error: BaseException) -> str:
    """An error in one line, without the private paths of the operating system's errors."""
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    text = " ".join(str(error).split())
    if len(text) > 300:
        text = text[:300] + " ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
