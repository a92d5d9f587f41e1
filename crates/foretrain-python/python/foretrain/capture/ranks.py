"""Which rank this process is, without asking other processes."""

from __future__ import annotations

import os
from dataclasses import dataclass

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
_SIZES = (
    "WORLD_SIZE",
    "SLURM_NTASKS",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
)
_LOCAL_RANKS = (
    "LOCAL_RANK",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
)


@dataclass(frozen=True)
class Place:
    """A process among those of its job."""

    rank: int
    world_size: int
    local_rank: int | None
    """Number of the process on its machine, where a launcher tells."""
    source: str
    """Where the rank is from."""


def place() -> Place:
    """The place that torch.distributed tells, else the launcher's variables, else 0 of 1."""
    local_rank = _first(_LOCAL_RANKS)
    local = None if local_rank is None else local_rank[1]
    try:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            return Place(dist.get_rank(), dist.get_world_size(), local, "torch.distributed")
    except Exception:  # A half-built process group must not keep a capture from its rank.
        pass
    for name, size_name in zip(_RANKS, _SIZES, strict=True):
        rank = _number(name)
        if rank is not None:
            size = _number(size_name) or rank + 1
            return Place(rank, max(size, rank + 1), local, name)
    return Place(0, 1, local, "default")


def _first(names: tuple[str, ...]) -> tuple[str, int] | None:
    for name in names:
        value = _number(name)
        if value is not None:
            return name, value
    return None


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
