"""Emulates several nodes on one machine: real processes, real libraries, links of a chosen rate.

Each node is a process in a network namespace of its own, behind a link that sends at a limited
rate. It takes Linux and either root or user namespaces. From Python::

    from foretrain.capture.emulate import Emulation, Settings
    with Emulation(Settings(nodes=4, bandwidth=200e6)) as emulation:
        emulation.run([sys.executable, "train.py"])

or as a program::

    python -m foretrain.capture.emulate --nodes 4 --bandwidth 200mbit -- train.py
"""

from .emulation import Emulation, Outcome, Settings
from .network import limit
from .replaying import Replay, ReplayError, forecast, replay
from .system import EmulationError, why_not

__all__ = [
    "Emulation",
    "EmulationError",
    "Outcome",
    "Replay",
    "ReplayError",
    "Settings",
    "forecast",
    "limit",
    "replay",
    "why_not",
]
