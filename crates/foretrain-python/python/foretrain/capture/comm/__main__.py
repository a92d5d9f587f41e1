"""``python -m foretrain.capture.comm``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .arguments import Arguments, parse
from .group import SweepError, World
from .interference import measure as measure_interference
from .launch import end_with_parent, is_mpi_rank, is_rank, run_mpi_ranks, run_ranks
from .primitives import measure as measure_primitives
from .quantities import parse_sizes
from .sweep import COLUMNS, Plan, sweep
from .table import Table
from .torch_group import TorchWorld, import_torch

#: Sizes on processors and on GPUs, unless others are asked for.
_SIZES = {"cpu": "1K..64M", "gpu": "1K..1G"}


def main() -> int:
    """Runs a rank, or starts the ranks of this machine; returns the exit code."""
    asked = parse()
    if asked.nproc and asked.backend == "mpi" and not is_mpi_rank():
        return _fail_or(run_mpi_ranks, asked.nproc)
    if asked.nproc and asked.backend != "mpi" and not is_rank():
        # Start-up and the tables beside the collectives have their time too.
        seconds = 3.0 * asked.budget + 2.0 * asked.timeout + 60.0
        return run_ranks("foretrain.capture.comm", sys.argv[1:], asked.nproc, seconds)
    end_with_parent()
    try:
        return _rank(asked)
    except (SweepError, FileExistsError) as error:
        return _fail(str(error), 2)
    except OSError as error:
        return _fail(f"{error.strerror or error} ({error.filename or 'while measuring'})", 2)
    except RuntimeError as error:
        who = os.environ.get("RANK", "?")
        return _fail(f"rank {who} cannot go on: {str(error).splitlines()[0]}", 1)
    except KeyboardInterrupt:
        return 130


def _rank(asked: Arguments) -> int:
    world = _world(asked)
    if world.size < 2 and "comm" in asked.tables:
        raise SweepError(
            "one rank has nobody to communicate with: start more with --nproc N or torchrun"
        )
    sizes = asked.sizes or parse_sizes(_SIZES["cpu" if world.device == "cpu" else "gpu"])
    plan = Plan(sizes, asked.budget, asked.operations, asked.ranks)
    if asked.quiet:
        plan.progress = None
    if "comm" in asked.tables and not _collectives(world, plan, asked):
        return 2
    if isinstance(world, TorchWorld):
        _beside(world, plan, asked)
    world.barrier()
    world.close()
    return 0


def _collectives(world: World, plan: Plan, asked: Arguments) -> bool:
    """Measures the collectives; returns whether that went well, of which the first rank speaks."""
    if world.rank != 0:
        # The first rank may find that it cannot write.
        return bool(world.agree(0.0)) and sweep(world, plan, None) >= 0 and bool(world.agree(0.0))
    path = Path(asked.out) / "comm.csv"
    try:
        table = Table(path, COLUMNS, [about(world)], overwrite=asked.overwrite)
    except OSError:
        world.agree(0.0)
        raise
    world.agree(1.0)
    with table:
        points = sweep(world, plan, table)
    world.agree(1.0 if points else 0.0)
    if not points:
        raise SweepError("nothing was measured: --ranks names no group that these ranks can form")
    print(f"{points} points in {path}", file=sys.stderr)
    return True


def _beside(world: TorchWorld, plan: Plan, asked: Arguments) -> None:
    """The tables beside the collectives, each in a third of their time."""
    less = replace(plan, budget=plan.budget / 3.0)
    if "primitives" in asked.tables and world.rank == 0:
        measure_primitives(
            world.torch,
            world.place,
            plan.sizes,
            less.budget,
            asked.out,
            about(world),
            asked.overwrite,
        )
    if "interference" in asked.tables and world.size > 1:
        measure_interference(world, less, asked.out, about(world), asked.overwrite)


def about(world: World) -> str:
    """What was measured, for the head of a table."""
    nodes = len(set(world.nodes_of))
    return (
        f"foretrain capture comm: {world.library} on {world.device}, "
        f"{world.size} processes, {nodes} machine(s)"
    )


def _world(asked: Arguments) -> World:
    if asked.backend == "mpi":
        try:
            has_mpi = import_torch().distributed.is_mpi_available()
        except SweepError:
            has_mpi = False
        if not has_mpi:
            from .mpi_group import MpiWorld

            return MpiWorld()
    if not is_rank() and asked.backend != "mpi":
        raise SweepError(
            "no launcher has made this process a rank: run it under torchrun, or give --nproc N"
        )
    return TorchWorld(asked.backend, asked.timeout)


def _fail_or(start: Callable[[str, list[str], int], int], count: int) -> int:
    try:
        return start("foretrain.capture.comm", sys.argv[1:], count)
    except SweepError as error:
        return _fail(str(error), 2)


def _fail(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
