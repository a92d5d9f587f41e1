"""The `foretrain` command, as the wheel installs it."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    from . import _native

    # The interpreter would only take note of an interrupt; the command ends, or handles it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main([os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv[1:]])
