"""The system's own commands and what this process may do with them."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence

#: Commands that emulation calls: iproute2, util-linux and procps.
COMMANDS = ("ip", "tc", "unshare", "nsenter", "sysctl")
_PR_SET_PDEATHSIG = 1
_SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_INSIDE = "FORETRAIN_EMULATE_INSIDE"


class EmulationError(Exception):
    """Nodes cannot be emulated; the message says why and what to do."""


def call(command: Sequence[str]) -> None:
    """Runs a command that must succeed and says nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30.0, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmulationError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        raise EmulationError(f"{' '.join(command)}: {why}")


def why_not() -> str | None:
    """Why nodes cannot be emulated here; ``None`` if they can."""
    if sys.platform != "linux":
        return f"network namespaces are Linux's, and this is {sys.platform}"
    missing = [name for name in COMMANDS if not shutil.which(name)]
    if missing:
        return f"{missing[0]} is not installed (packages iproute2, util-linux and procps)"
    try:
        probe = subprocess.run(
            [*_unshare(), "ip", "link", "add", "probe", "type", "bridge"],
            capture_output=True,
            text=True,
            timeout=30.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if probe.returncode:
        said = probe.stderr.strip().splitlines()
        why = said[-1] if said else "network namespaces cannot be made"
        return f"{why}; it takes root, or user namespaces (kernel.unprivileged_userns_clone)"
    return None


def _unshare() -> list[str]:
    """A new network namespace, by way of a user namespace where this process is not root."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *rights, "--net"]


def enter_own_world(arguments: Sequence[str]) -> None:
    """Goes on as root of a user namespace if this process is not root, by starting over in it.

    ``arguments`` are those of the interpreter, as in ``["-m", "module", ...]``.
    """
    if os.geteuid() == 0 or os.environ.get(_INSIDE):
        return
    environment = dict(os.environ, **{_INSIDE: "1"})
    command = [*_unshare(), sys.executable, *arguments]
    os.execvpe(command[0], command, environment)


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that started it ends. For use before exec."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def ask_for_short_slices(nanos: int) -> bool:
    """Asks the scheduler for short turns, so that a thread that wakes up is soon let in.

    Returns whether it was granted: kernels before 6.12 ignore or refuse it.
    """
    number = _SYS_SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        return False
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
    wanted = struct.pack("<IIQiIQQQ", 48, 0, 0, os.nice(0), 0, nanos, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, wanted, 0) == 0)
