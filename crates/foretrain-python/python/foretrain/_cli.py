"""The `foretrain` command, as the wheel installs it."""

from __future__ import annotations

import signal
import sys

# What starts the command: some verbs need a second process.
PROGRAM = (sys.executable, ["-m", "foretrain"])


def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    from . import _native

    # The interpreter would only take note of an interrupt; the command ends, or handles it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(sys.argv[1:], PROGRAM)
