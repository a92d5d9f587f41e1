"""Which ranks a sweep measures together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Subset:
    """Ranks that communicate while the others wait."""

    ranks: tuple[int, ...]
    #: Nodes that they are on.
    nodes: int

    def describe(self) -> str:
        """For people: ``4 ranks on 2 nodes``."""
        nodes = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        return f"{len(self.ranks)} ranks{nodes}"


def subsets(nodes_of: Sequence[int], only: Sequence[int] = ()) -> list[Subset]:
    """The subsets of a job whose rank r is on node ``nodes_of[r]``, the largest first.

    All ranks; the first 2, 4, 8 ... ranks, which fill one node after the other; and one rank on
    each
    of 2, 4 ... all nodes. ``only`` names the numbers of ranks that are asked for. All begin with
    rank 0.
    """
    by_node: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes_of):
        by_node.setdefault(node, []).append(rank)
    # Rank 0's node first, and the ranks of a node together, as jobs are laid out.
    packed = [rank for node in by_node.values() for rank in node]
    firsts = [ranks[0] for ranks in by_node.values()]
    groups: dict[tuple[int, ...], None] = {}
    for row in (packed, firsts):
        for count in [len(row), *_powers_below(len(row))]:
            if count > 1:
                groups.setdefault(tuple(sorted(row[:count])))
    chosen = [
        Subset(ranks, len({nodes_of[rank] for rank in ranks}))
        for ranks in groups
        if not only or len(ranks) in only
    ]
    return sorted(chosen, key=lambda subset: (-len(subset.ranks), subset.nodes))


def _powers_below(count: int) -> list[int]:
    powers = []
    power = 2
    while power < count:
        powers.append(power)
        power *= 2
    return powers
