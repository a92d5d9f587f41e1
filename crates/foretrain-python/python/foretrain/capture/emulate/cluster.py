"""The cluster that emulated nodes are, as forecasts take it."""

from __future__ import annotations

from pathlib import Path

#: The name of a node in what `describe` writes.
NODE = "emulated"
#: Bits per second where links have no limit of their own; measured times take its place.
_UNLIMITED = 10e9

#: Computing keeps its recorded time, so no figure of the core itself matters.
_HARDWARE = """\
[devices.core]
kind = "cpu"
vendor = "other"
memory = "8 GiB"
memory_bandwidth = "10 GB/s"
peak = {{ f32 = "50 GFLOP/s" }}
source = "a core of this machine"

[nodes.{node}]
device = "core"
devices = 1
nics = 1
nic = "ethernet"
nic_bandwidth = "{rate:.6f} Mbit/s"
source = "an emulated link"
"""


def describe(path: Path, bandwidth: float | None) -> Path:
    """Writes a hardware file with one kind of node, whose link sends so many bits per second."""
    rate = (bandwidth or _UNLIMITED) / 1e6
    path.write_text(_HARDWARE.format(node=NODE, rate=rate), encoding="utf-8")
    return path


def calibrate(table: Path, hardware: Path, path: Path) -> Path:
    """Writes a cluster file from measured collectives (`comm.csv`)."""
    import foretrain

    foretrain.calibrate.collectives(table, on=NODE, hardware=hardware, out=path, force=True)
    return path
