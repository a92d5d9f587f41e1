"""The machine of a process: processor, cores that it may use, memory, and a name for it."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from pathlib import Path
from typing import Any

_CGROUPS = Path("/sys/fs/cgroup")


def describe_machine(hostname: str) -> dict[str, Any]:
    """Processor and memory of this machine. `hostname` is `hash`, `plain` or `omit`."""
    described: dict[str, Any] = {
        "cpu": cpu_model(),
        "logical_cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "quota_cores": quota_cores(),
        "memory_bytes": _memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    host = socket.gethostname() if hostname == "plain" else host_for(hostname)
    if host:
        described["host"] = host
    return described


def host_for(hostname: str) -> str | None:
    """What stands in files in place of the machine's name; None if that may stand there."""
    if hostname == "plain":
        return None
    return hashed_host() if hostname == "hash" else ""


def hashed_host() -> str:
    """A name by which ranks on one machine of one job are known, and not the machine.

    A job's identity is mixed in where a launcher tells it, so that captures of two jobs do not say
    that they shared a machine. A short hash can be found by trying all likely names.
    """
    job = [
        os.environ.get(name, "")
        for name in ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    ]
    text = "\0".join([socket.gethostname(), *job])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cpu_model() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Hardware", "cpu model"):
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int | None:
    """Logical cores that the process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def quota_cores(root: Path = _CGROUPS, own: str | None = None) -> float | None:
    """Cores' worth of time that control groups grant this process; none without a quota.

    The tightest of the process's own group and those above it counts. `own` is the text of
    `/proc/self/cgroup`.
    """
    if own is None:
        try:
            own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        except OSError:
            return None
    quotas = []
    for line in own.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            quotas += [_quota_v2(place) for place in _upwards(root, group)]
        elif "cpu" in controllers.split(","):
            for mount in (controllers, "cpu"):
                quotas += [_quota_v1(place) for place in _upwards(root / mount, group)]
    granted = [quota for quota in quotas if quota is not None]
    return min(granted) if granted else None


def _upwards(root: Path, group: str) -> list[Path]:
    """A group's directory and all above it, up to the root.

    In a container the own group's path may be one of the host's, which is not mounted; the root
    is then the container's own group.
    """
    place = root / group.lstrip("/")
    if ".." in place.parts:
        return [root]
    above = [place, *place.parents]
    return above[: above.index(root) + 1]


def _quota_v2(place: Path) -> float | None:
    try:
        quota, period = (place / "cpu.max").read_text(encoding="ascii").split()[:2]
        return _cores(int(quota), int(period)) if quota != "max" else None
    except (OSError, ValueError):
        return None


def _quota_v1(place: Path) -> float | None:
    try:
        quota = int((place / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period = int((place / "cpu.cfs_period_us").read_text(encoding="ascii"))
        return _cores(quota, period)
    except (OSError, ValueError):
        return None


def _cores(quota: int, period: int) -> float | None:
    return quota / period if quota > 0 and period > 0 else None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def resident_peak_bytes() -> int | None:
    """The most memory that the process held at once."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kibibytes, except on macOS.
    return peak if sys.platform == "darwin" else peak * 1024
