"""The command line of ``python -m foretrain.capture.emulate``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ..comm.quantities import checked, parse_count, parse_rate, parse_seconds
from .emulation import Settings


@dataclass(frozen=True)
class Arguments:
    """What was asked for."""

    settings: Settings
    #: Seconds that the job may take; no limit if ``None``.
    timeout: float | None
    #: Whether every node runs a job of its own.
    alone: bool
    #: A capture bundle to replay instead of a script.
    replay: str | None
    #: How the replay synchronises.
    strategy: str
    #: Steps of a replay.
    steps: int
    #: The cluster that a replay's forecast is for; `None` for one of the emulated links.
    on: str | None
    #: Measured primitives, where a replay is only forecast.
    primitives: str | None
    command: list[str]


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Parses the command line; exits with 2 and a message if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m foretrain.capture.emulate",
        usage="%(prog)s --nodes N [options] -- SCRIPT.py [arguments]\n"
        "       %(prog)s --nodes N [options] --replay BUNDLE",
        description="Runs a training script on nodes that are emulated on this machine, one "
        "process each, with the variables that torchrun sets; or replays a recorded one. "
        "Takes Linux, and root or user namespaces.",
    )
    parser.add_argument("--nodes", type=checked(_count), required=True, metavar="N")
    parser.add_argument(
        "--bandwidth",
        type=checked(parse_rate),
        metavar="RATE",
        help="what each node may send, like 200mbit or 1gbit (no limit)",
    )
    parser.add_argument(
        "--latency",
        type=checked(parse_seconds),
        default=0.0,
        metavar="TIME",
        help="what each packet travels, like 1ms; takes the kernel's netem (none)",
    )
    parser.add_argument(
        "--cores",
        type=checked(_cores),
        metavar="N",
        help="processor time that a node may use, as in 0.5: a hard limit, which comes in turns",
    )
    parser.add_argument(
        "--nodes-per-core",
        type=checked(_count),
        metavar="N",
        help="pin so many nodes to each core, which share it evenly; less noisy than --cores",
    )
    parser.add_argument(
        "--priority", action="store_true", help="go before other load of the machine (takes root)"
    )
    parser.add_argument(
        "--alone", action="store_true", help="run one job of one rank on every node, not one of all"
    )
    parser.add_argument(
        "--timeout", type=checked(parse_seconds), metavar="TIME", help="end the job after so long"
    )
    parser.add_argument(
        "--replay", metavar="BUNDLE", help="replay what a capture recorded, instead of a script"
    )
    parser.add_argument(
        "--strategy",
        default="ddp",
        metavar="PASSES",
        help="how a replay synchronises, as in 'fuse(4MiB) | compress'; `foretrain strategies` "
        "lists passes (ddp)",
    )
    parser.add_argument(
        "--steps", type=checked(_count), default=20, metavar="N", help="steps of a replay (20)"
    )
    parser.add_argument(
        "--on",
        metavar="CLUSTER",
        help="hold a replay against a forecast for this cluster (one calibrated by collectives of "
        "the emulated nodes)",
    )
    parser.add_argument(
        "--primitives",
        metavar="FILE",
        help="what `foretrain calibrate primitives` wrote, for the forecast where nodes cannot be "
        "emulated (measured then)",
    )
    parser.add_argument("command", nargs="*", help="a script, or a program and its arguments")
    given = parser.parse_args(arguments)
    if bool(given.command) == bool(given.replay):
        parser.error("give a script behind --, or a bundle with --replay")
    if given.cores is not None and given.nodes_per_core is not None:
        parser.error("--cores and --nodes-per-core are two ways to share cores: give one")
    settings = Settings(
        nodes=given.nodes,
        bandwidth=given.bandwidth,
        latency=given.latency,
        quota=given.cores,
        nodes_per_core=given.nodes_per_core,
        priority=given.priority,
    )
    return Arguments(
        settings=settings,
        timeout=given.timeout,
        alone=given.alone,
        replay=given.replay,
        strategy=given.strategy,
        steps=given.steps,
        on=given.on,
        primitives=given.primitives,
        command=given.command,
    )


def _count(text: str) -> int:
    return parse_count(text, 10_000, "number")


def _cores(text: str) -> float:
    try:
        cores = float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no number of cores, like 0.5") from error
    # The kernel deals out no less than a millisecond in a period.
    if not 0.2 <= cores <= 1024.0:
        raise ValueError(f"{text!r} is no number of cores from 0.2 to 1024")
    return cores
