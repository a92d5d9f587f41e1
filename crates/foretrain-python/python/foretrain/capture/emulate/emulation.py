"""Nodes on one machine, and jobs on them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO

from . import processors
from .network import DEVICE, Network, address
from .system import EmulationError, ask_for_short_slices, die_with_parent, why_not

_PORT = 29_500
#: A thread that wakes up waits no longer than this for a turn of another node on the same core.
_SLICE_NANOS = 100_000
#: Seconds that processes get to end by themselves.
_GRACE = 5.0


@dataclass(frozen=True)
class Settings:
    """What to emulate."""

    #: Nodes, each with one process.
    nodes: int
    #: Bits per second that a node may send; no limit if ``None``.
    bandwidth: float | None = None
    #: Seconds that a packet travels, one way.
    latency: float = 0.0
    #: Cores whose time a node may use: a hard limit, dealt out every 5 ms.
    quota: float | None = None
    #: Nodes that share one core, which they are pinned to; no pinning if ``None``.
    nodes_per_core: int | None = None
    #: Whether the nodes go before other load of the machine.
    priority: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    #: 0 if all its processes succeeded, else the first failure's.
    code: int
    #: What went wrong, for people.
    why: str | None = None


class Emulation:
    """Emulated nodes; a context manager that takes them down on the way out.

    ::

        with Emulation(Settings(nodes=4, bandwidth=200e6)) as emulation:
            emulation.run([sys.executable, "train.py"])
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._network: Network | None = None
        self._groups: processors.Groups | None = None
        self._cores: list[int] | None = None
        self._jobs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Emulation:
        reason = why_not()
        if reason:
            raise EmulationError(f"nodes cannot be emulated here: {reason}")
        asked = self.settings
        try:
            if asked.nodes_per_core is not None:
                self._cores = processors.cores_of(asked.nodes, asked.nodes_per_core)
            self._groups = self._deal_out()
            self._network = Network.build(asked.nodes)
            self.limit(asked.bandwidth, asked.latency)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def limit(self, bandwidth: float | None, latency: float = 0.0) -> None:
        """Changes the rate at which nodes may send, in bits per second."""
        self._up().limit(bandwidth, latency)

    def run(
        self,
        command: Sequence[str],
        *,
        nodes: int | None = None,
        alone: bool = False,
        environment: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Runs a command on the first ``nodes`` nodes (all) as ranks of one job.

        With ``alone`` each node runs a job of its own, with one rank: so one rank can be recorded
        while its neighbours load the machine as they would in the real job. Ranks find each
        other by the variables that ``torchrun`` sets. The first rank that fails ends the others.
        """
        self._up()
        count = nodes or self.settings.nodes
        if not 1 <= count <= self.settings.nodes:
            raise EmulationError(f"{count} nodes were asked for, of {self.settings.nodes}")
        try:
            for node in range(count):
                variables = self._variables(node, count, alone, environment or {})
                self._jobs.append(self._start(node, command, variables, output))
            return self._watch(timeout)
        finally:
            self._end_jobs()

    def end(self) -> None:
        """Ends what runs and takes the nodes down. May be called again."""
        self._end_jobs()
        if self._network:
            self._network.end()
            self._network = None
        if self._groups:
            self._groups.end()
            self._groups = None

    def _deal_out(self) -> processors.Groups | None:
        asked = self.settings
        needed = asked.quota is not None or asked.priority
        if not needed and asked.nodes_per_core is None:
            return None
        try:
            return processors.Groups(asked.nodes, asked.quota)
        except EmulationError:
            # Sessions that share a core get equal parts of it without groups as well.
            if needed:
                raise
            return None

    def _up(self) -> Network:
        if self._network is None:
            raise EmulationError("the nodes are not up: use the emulation in a with statement")
        return self._network

    def _variables(
        self, node: int, count: int, alone: bool, more: Mapping[str, str]
    ) -> dict[str, str]:
        own = {
            "RANK": str(0 if alone else node),
            "WORLD_SIZE": str(1 if alone else count),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": str(0 if alone else node),
            "MASTER_ADDR": address(node if alone else 0),
            "MASTER_PORT": str(_PORT),
            "GLOO_SOCKET_IFNAME": DEVICE,
            "NCCL_SOCKET_IFNAME": DEVICE,
            "TP_SOCKET_IFNAME": DEVICE,
            "FORETRAIN_NODE": f"node{node}",
        }
        threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        return {**os.environ, **threads, **own, **more}

    def _start(
        self,
        node: int,
        command: Sequence[str],
        variables: Mapping[str, str],
        output: IO[bytes] | None,
    ) -> subprocess.Popen[bytes]:
        def prepare() -> None:
            die_with_parent()
            if self._groups:
                self._groups.enter(node)
            if self._cores:
                os.sched_setaffinity(0, {self._cores[node]})
            if self.settings.priority or self._cores:
                ask_for_short_slices(_SLICE_NANOS)

        whole = [*self._up().nodes[node].enter(), *command]
        try:
            return subprocess.Popen(
                whole,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=prepare,
                start_new_session=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EmulationError(
                f"{command[0]} cannot be started on node {node}: {error}"
            ) from error

    def _watch(self, timeout: float | None) -> Outcome:
        until = time.monotonic() + timeout if timeout else None
        while True:
            codes = [job.poll() for job in self._jobs]
            for node, code in enumerate(codes):
                if code:
                    return Outcome(code if code > 0 else 128 - code, _describe(node, code))
            if all(code == 0 for code in codes):
                return Outcome(0)
            if until and time.monotonic() > until:
                return Outcome(124, f"the job did not end within {timeout:g} s and was ended")
            time.sleep(0.05)

    def _end_jobs(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for job in self._jobs:
                try:
                    # The rank and what it has started.
                    os.killpg(job.pid, number)
                except OSError:
                    pass
            until = time.monotonic() + _GRACE
            for job in self._jobs:
                try:
                    job.wait(max(0.0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    pass
        if self._jobs and self._network is not None:
            self._network.clear()
        self._jobs = []


def _describe(node: int, code: int) -> str:
    if code > 0:
        return f"the process of node {node} failed with {code}; the others were ended"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"the process of node {node} was ended by {name}; the others were ended"
