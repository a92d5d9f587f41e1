"""Processor time of nodes: control groups of either version, and pinning.

Groups are named after the process that made them, so those that an earlier run left behind are
known by that process being gone, and are removed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from .system import EmulationError

_NAME = "foretrain-emulate-"
#: A quota is dealt out this often: the shortest that leaves turns of whole milliseconds.
_PERIOD_US = 5_000
#: The largest weights that there are, so that the emulation goes before all other load.
_MOST_SHARES, _MOST_WEIGHT = 262_144, 10_000


class Groups:
    """A control group of all nodes; with a quota, one per node below it.

    Without a quota nodes share their cores thread by thread. Groups of their own would take turns
    of whole ticks, and a message for a node would wait while its neighbour computes: a node with
    cores of its own takes it at once.
    """

    def __init__(self, nodes: int, quota: float | None, root: Path | None = None) -> None:
        self._root, self._second = (root, _is_second(root)) if root else _hierarchy()
        remove_stale(self._root)
        cores = len(os.sched_getaffinity(0))
        if quota is not None and quota > cores:
            raise EmulationError(f"a node cannot have {quota:g} cores: {cores} may be used here")
        self._own = self._root / f"{_NAME}{os.getpid()}"
        below = [self._own / f"node{node}" for node in range(nodes)]
        self.nodes = below if quota is not None else [self._own] * nodes
        try:
            self._build(quota)
        except OSError as error:
            self.end()
            raise EmulationError(
                f"processor time cannot be dealt out: {error}; it takes root and the cpu "
                "controller of control groups"
            ) from error

    def enter(self, node: int) -> None:
        """Puts this process into a node's group."""
        (self.nodes[node] / "cgroup.procs").write_text(str(os.getpid()))

    def end(self) -> None:
        """Removes the groups, whose processes have ended."""
        _remove(self._own)

    def _build(self, quota: float | None) -> None:
        self._own.mkdir()
        if self._second:
            _allow_cpu(self._root)
            if quota is not None:
                _allow_cpu(self._own)
            (self._own / "cpu.weight").write_text(str(_MOST_WEIGHT))
        else:
            (self._own / "cpu.shares").write_text(str(_MOST_SHARES))
        if quota is None:
            return
        for node in self.nodes:
            node.mkdir()
            allowed = int(_PERIOD_US * quota)
            if self._second:
                (node / "cpu.max").write_text(f"{allowed} {_PERIOD_US}")
            else:
                (node / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (node / "cpu.cfs_quota_us").write_text(str(allowed))


def _hierarchy() -> tuple[Path, bool]:
    """Where groups with processor time are made, and whether they are of version 2."""
    base = Path("/sys/fs/cgroup")
    for name in ("cpu", "cpu,cpuacct"):
        if (base / name / "cpu.shares").exists():
            return base / name, False
    if "cpu" in _words(base / "cgroup.controllers"):
        return base, True
    raise EmulationError("this system has no control groups for processor time")


def _is_second(root: Path) -> bool:
    return (root / "cgroup.controllers").exists()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _allow_cpu(group: Path) -> None:
    if "cpu" not in _words(group / "cgroup.subtree_control"):
        (group / "cgroup.subtree_control").write_text("+cpu")


def remove_stale(root: Path) -> list[str]:
    """Removes groups of runs whose process is gone; returns their names."""
    removed = []
    for group in sorted(root.glob(f"{_NAME}*")):
        found = re.fullmatch(re.escape(_NAME) + r"(\d+)", group.name)
        if found and not _is_emulation(int(found.group(1))) and _remove(group):
            removed.append(group.name)
    return removed


def _is_emulation(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _remove(group: Path) -> bool:
    """Removes a group and those below it. Processes that are ending get a moment."""
    for _ in range(40):
        try:
            for below in sorted(group.glob("node*")):
                below.rmdir()
            group.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(0.05)
    return False


def cores_of(nodes: int, per_core: int, allowed: Sequence[int] | None = None) -> list[int]:
    """The core of each node when ``per_core`` of them share one."""
    cores = sorted(allowed or os.sched_getaffinity(0))
    if nodes > per_core * len(cores):
        raise EmulationError(
            f"{nodes} nodes at {per_core} per core need {-(-nodes // per_core)} cores, and "
            f"{len(cores)} may be used here"
        )
    return [cores[node // per_core] for node in range(nodes)]
