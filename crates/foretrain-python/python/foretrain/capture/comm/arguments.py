"""The command line of ``python -m foretrain.capture.comm``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .group import OPERATIONS
from .quantities import checked, parse_count, parse_seconds, parse_sizes

#: Tables that are written, in the order in which they are measured.
TABLES = ("comm", "primitives", "interference")


@dataclass(frozen=True)
class Arguments:
    """What was asked for; times are seconds, sizes bytes."""

    sizes: list[int]
    operations: list[str]
    ranks: list[int]
    tables: list[str]
    backend: str | None
    nproc: int | None
    out: Path
    overwrite: bool
    budget: float
    timeout: float
    quiet: bool


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Parses the command line; exits with 2 and a message if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m foretrain.capture.comm",
        description="Measures collectives of the library that trains here, for "
        "`foretrain calibrate collectives comm.csv`. Run under torchrun or mpirun on all machines, "
        "or alone with --nproc.",
    )
    parser.add_argument(
        "--sizes",
        type=checked(parse_sizes),
        default=None,
        metavar="SIZES",
        help="sizes in bytes, like 1K..64M or 4K,1M (up to 64M on CPUs and 1G on GPUs)",
    )
    parser.add_argument(
        "--ops",
        type=checked(_operations),
        default=list(OPERATIONS),
        metavar="LIST",
        help="operations: " + ", ".join(OPERATIONS),
    )
    parser.add_argument(
        "--ranks",
        type=checked(_counts),
        default=[],
        metavar="LIST",
        help="numbers of ranks to measure, like 2,4 (all powers of two, and all)",
    )
    parser.add_argument(
        "--tables",
        type=checked(_tables),
        default=list(TABLES),
        metavar="LIST",
        help="tables to write: " + ", ".join(TABLES),
    )
    parser.add_argument(
        "--backend", choices=("nccl", "gloo", "mpi"), help="library (nccl with GPUs, else gloo)"
    )
    parser.add_argument(
        "--nproc", type=checked(_count), metavar="N", help="start N ranks on this machine"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("."), metavar="DIR", help="where the tables go (here)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace tables that are there")
    parser.add_argument(
        "--budget",
        type=checked(parse_seconds),
        default=60.0,
        metavar="TIME",
        help="time for the collectives (60s); the other tables take up to a third more each",
    )
    parser.add_argument(
        "--timeout",
        type=checked(parse_seconds),
        default=60.0,
        metavar="TIME",
        help="how long a rank waits for another that is silent (60s)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    given = parser.parse_args(arguments)
    return Arguments(
        sizes=given.sizes or [],
        operations=given.ops,
        ranks=given.ranks,
        tables=given.tables,
        backend=given.backend,
        nproc=given.nproc,
        out=given.out,
        overwrite=given.overwrite,
        budget=given.budget,
        timeout=given.timeout,
        quiet=given.quiet,
    )


def _count(text: str) -> int:
    return parse_count(text, 4096, "number of processes")


def _counts(text: str) -> list[int]:
    counts = [_count(part) for part in text.split(",")]
    if min(counts) < 2:
        raise ValueError("one rank has nobody to communicate with")
    return counts


def _named(text: str, known: Sequence[str], what: str) -> list[str]:
    names = text.replace("-", "_").split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"no {what} {name!r}: choose among {', '.join(known)}")
    return [name for name in known if name in names]


def _operations(text: str) -> list[str]:
    return _named(text, OPERATIONS, "operation")


def _tables(text: str) -> list[str]:
    return _named(text, TABLES, "table")
