"""Nodes as network namespaces around a switch.

::

    node 0            switch             node 1
    eth0 ──tbf──▶ port0 ─ bridge ─ port1 ◀──tbf── eth0

Each namespace lives as long as a process that waits for its standard input to end, which it does
when this process ends, however it ends. Processes that a job leaves on nodes are ended with it. So
nothing is left behind, but for children of ranks where this process is killed itself, and nothing of
the machine's own network is touched: the bridge has a namespace too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .system import EmulationError, call, die_with_parent

#: The device of every node.
DEVICE = "eth0"
_SUBNET = "10.77"
#: Bytes that leave a node as one packet at most. The usual 64 KiB would come in bursts that no slow
#: link makes; small ones would cost more processor time than a network card leaves to do.
_LARGEST_PACKET = 32_768
#: A link that rested sends as much at once: no less than a packet, for a queue whose first packet
#: is larger stands still for ever, and no less than timers can wait for.
_LEAST_BURST = 40_960
_BURST_SECONDS = 2e-3
_MOST_NODES = 250


def address(node: int) -> str:
    """The address of a node."""
    return f"{_SUBNET}.0.{node + 1}"


class Namespace:
    """A network namespace, and the process that holds it."""

    def __init__(self) -> None:
        try:
            self._holder = subprocess.Popen(
                ["unshare", "--net", "--", "cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            raise EmulationError(f"no network namespace can be made: {error}") from error
        self.pid = self._holder.pid
        self._wait_until_apart()

    def enter(self) -> list[str]:
        """What goes before a command to run it in here."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]

    def call(self, *command: str) -> None:
        """Runs a command in here."""
        call([*self.enter(), *command])

    def clear(self) -> None:
        """Ends whatever runs in here: a job may have left processes with sessions of their own."""
        try:
            own = os.readlink(f"/proc/{self.pid}/ns/net")
        except OSError:
            return
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == self.pid:
                continue
            # It may end meanwhile, or be nobody's that may be looked at.
            with contextlib.suppress(OSError):
                if os.readlink(process / "ns" / "net") == own:
                    os.kill(int(process.name), signal.SIGKILL)

    def end(self) -> None:
        """Lets go of the namespace, which ends with the last process in it."""
        if self._holder.stdin:
            self._holder.stdin.close()
        try:
            self._holder.wait(5.0)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()

    def _wait_until_apart(self) -> None:
        own = os.readlink("/proc/self/ns/net")
        for _ in range(2_000):
            if self._holder.poll() is not None:
                raise EmulationError("no network namespace can be made: it takes root")
            try:
                if os.readlink(f"/proc/{self.pid}/ns/net") != own:
                    return
            except OSError:
                pass
            time.sleep(0.005)
        self.end()
        raise EmulationError("a network namespace did not come to be within 10 s")


@dataclass
class Network:
    """A switch and the nodes around it."""

    switch: Namespace
    nodes: list[Namespace]

    @classmethod
    def build(cls, count: int) -> Network:
        """``count`` nodes on links without limit."""
        if not 1 <= count <= _MOST_NODES:
            raise EmulationError(f"1 to {_MOST_NODES} nodes can be emulated, not {count}")
        network = cls(Namespace(), [])
        try:
            network.switch.call("ip", "link", "add", "bridge", "type", "bridge")
            network.switch.call("ip", "link", "set", "bridge", "up")
            for node in range(count):
                network.nodes.append(Namespace())
                network._connect(node)
        except BaseException:
            network.end()
            raise
        return network

    def limit(self, bits_per_second: float | None, latency: float = 0.0) -> None:
        """Limits what every node may send; ``None`` lifts it. ``latency`` is seconds one way."""
        for node in self.nodes:
            limit(bits_per_second, latency, node.enter())

    def clear(self) -> None:
        """Ends what runs on the nodes."""
        for node in self.nodes:
            node.clear()

    def end(self) -> None:
        """Takes everything down."""
        self.clear()
        for namespace in [*self.nodes, self.switch]:
            namespace.end()

    def _connect(self, node: int) -> None:
        space = self.nodes[node]
        port = f"port{node}"
        add = ["ip", "link", "add", port, "type", "veth", "peer", "name", DEVICE]
        self.switch.call(*add, "netns", str(space.pid))
        self.switch.call("ip", "link", "set", port, "master", "bridge", "up")
        space.call("ip", "addr", "add", f"{address(node)}/16", "dev", DEVICE)
        space.call("ip", "link", "set", DEVICE, "gso_max_size", str(_LARGEST_PACKET), "up")
        # Every kernel has it, and without losses it does what the others do, only more evenly.
        space.call("sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        space.call("ip", "link", "set", "lo", "up")


def limit(
    bits_per_second: float | None, latency: float = 0.0, enter: list[str] | None = None
) -> None:
    """Limits what this node may send. A program on a node may call it for itself."""
    root = [*(enter or []), "tc", "qdisc", "replace", "dev", DEVICE, "root", "handle"]
    if bits_per_second is None:
        # The simplest queue of all stands for none, so that there is always one to replace.
        call([*root, "2:", "pfifo", "limit", "1000"])
        return
    burst = int(max(_LEAST_BURST, bits_per_second / 8 * _BURST_SECONDS))
    rate = ["rate", f"{bits_per_second:.0f}bit", "burst", str(burst), "limit", str(16 << 20)]
    call([*root, "1:", "tbf", *rate])
    if latency > 0.0:
        child = [*(enter or []), "tc", "qdisc", "replace", "dev", DEVICE, "parent", "1:1"]
        try:
            call([*child, "handle", "10:", "netem", "delay", f"{latency * 1e6:.0f}us"])
        except EmulationError as error:
            raise EmulationError(f"latency needs the kernel's netem: {error}") from error
