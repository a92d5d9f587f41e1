"""Ending functions that run on threads of the engine's."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable


def end(threads: Iterable[int]) -> None:
    """Raises KeyboardInterrupt in threads, by Python's names of them, as soon as they run Python."""
    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
        )
