"""Ranks on this machine, where no launcher has started any."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from .group import SweepError

#: Seconds that the other ranks get to notice that one has died.
GRACE = 5.0
_PARENT = "FORETRAIN_PARENT"


def is_rank() -> bool:
    """Whether a launcher has made this process a rank of a job."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_mpi_rank() -> bool:
    """Whether mpirun has started this process: Open MPI, MPICH and Intel's, or Slurm."""
    known = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")
    return any(name in os.environ for name in known)


def run_mpi_ranks(module: str, arguments: Sequence[str], count: int) -> int:
    """Runs ``python -m module arguments`` as ``count`` ranks of MPI; returns an exit code."""
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher is None:
        raise SweepError("ranks of MPI are started by mpirun, which is not on the path")
    command = [launcher, "-n", str(count), sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=False).returncode


def run_ranks(module: str, arguments: Sequence[str], count: int, seconds: float) -> int:
    """Runs ``python -m module arguments`` as ``count`` ranks; returns an exit code.

    The first rank that fails ends the others, and nobody runs longer than ``seconds``.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(count):
            environment = dict(
                os.environ,
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(count),
                LOCAL_WORLD_SIZE=str(count),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
            )
            environment[_PARENT] = str(os.getpid())
            environment.setdefault("OMP_NUM_THREADS", "1")
            command = [sys.executable, "-m", module, *arguments]
            ranks.append(subprocess.Popen(command, env=environment))
        return _watch(ranks, time.monotonic() + seconds)
    finally:
        end_all(ranks)


def _watch(ranks: list[subprocess.Popen[bytes]], until: float) -> int:
    while True:
        codes = [rank.poll() for rank in ranks]
        failed = [number for number, code in enumerate(codes) if code]
        if failed:
            return _report(ranks, failed[0])
        if all(code == 0 for code in codes):
            return 0
        if time.monotonic() > until:
            print("error: the ranks did not end in time and were ended", file=sys.stderr)
            return 1
        time.sleep(0.05)


def _report(ranks: list[subprocess.Popen[bytes]], number: int) -> int:
    code = ranks[number].returncode
    if code == 2:
        # It has said what is wrong with what was asked for.
        return 2
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"failed with {code}"
    print(
        f"error: rank {number} {how}; the other ranks are ended. Rows measured so far are kept.",
        file=sys.stderr,
    )
    return 1


def end_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends processes: asked first, then killed."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    until = time.monotonic() + GRACE
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_with_parent() -> None:
    """Ends this process soon after the one that started it as a rank has ended."""
    parent = os.environ.get(_PARENT)
    if not parent or not parent.isdigit():
        return

    def watch(expected: int) -> None:
        while os.getppid() == expected:
            time.sleep(1.0)
        os._exit(1)

    if os.getppid() == int(parent):
        threading.Thread(target=watch, args=(int(parent),), daemon=True).start()
