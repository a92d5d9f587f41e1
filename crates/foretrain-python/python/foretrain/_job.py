"""What was read, and step graphs as tables."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from . import _native

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars

Source = "str | os.PathLike[str]"


class Job:
    """Recordings of a job, or its step graphs: read and analysed once, asked many times.

    Every verb takes a job where it takes files. `ranks` are those that were read, `world_size` is
    the number of ranks the job had as far as is known.
    """

    def __init__(self, native: _native.NativeJob) -> None:
        self._native = native

    @property
    def ranks(self) -> list[int]:
        """Ranks that were read, in order."""
        return self._native.ranks

    @property
    def world_size(self) -> int:
        """Ranks of the recorded job, as far as is known."""
        return self._native.world_size

    @property
    def sources(self) -> list[str]:
        """The file of each rank."""
        return self._native.sources

    @property
    def is_recorded(self) -> bool:
        """Whether profiler traces were read, and not step graphs."""
        return self._native.is_recorded

    @property
    def step_times_ns(self) -> dict[int, list[int]]:
        """Recorded step times of each rank, in nanoseconds; empty for graphs."""
        return dict(zip(self.ranks, self._native.step_times_ns, strict=False))

    def graph(self, rank: int | None = None, step: int | None = None) -> StepGraph:
        """The steady step of a rank as a graph [default: the lowest], or with `step` the recorded
        step of that number. It is a copy: changing it does not change the job."""
        chosen = self.ranks[0] if rank is None else rank
        return StepGraph(self._native.graph(chosen, step))

    def __copy__(self) -> Job:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Job:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a job is held in this process alone and cannot be pickled: give other processes the "
            "paths of its files, or the step graphs, as in job.graph()"
        )

    def __repr__(self) -> str:
        ranks = f"{len(self.ranks)} of {self.world_size} ranks"
        what = "recorded" if self.is_recorded else "as step graphs"
        return f"<Job: {ranks}, {what}, from {self.sources[0] if self.sources else 'nowhere'}>"


class StepGraph:
    """The attributed graph of one training step.

    `nodes` and `edges` are Arrow tables: `pyarrow.table(graph.nodes)` and
    `polars.DataFrame(graph.nodes)` take them without a copy. Queries are those of the command, as in
    `kernel("*gemm*") & phase:backward`.
    """

    def __init__(self, native: _native.NativeStepGraph) -> None:
        self._native = native

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StepGraph:
        """A graph that was saved."""
        return cls(_native.NativeStepGraph.load(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves it as one Parquet file, which every verb reads."""
        self._native.save(os.fspath(path))

    def copy(self) -> StepGraph:
        """A graph of its own."""
        return StepGraph(self._native.copy())

    def __copy__(self) -> StepGraph:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> StepGraph:
        return self.copy()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _from_file_bytes, (self._native.file_bytes(),)

    @property
    def nodes(self) -> _native.Table:
        """One row per node (see docs/graph-format.md), as it is now."""
        return self._native.nodes()

    @property
    def edges(self) -> _native.Table:
        """One row per edge, as it is now."""
        return self._native.edges()

    @property
    def queues(self) -> list[tuple[str, str, int | None]]:
        """Name, kind and device of the queue that nodes name by position."""
        return self._native.queues

    @property
    def rank(self) -> int:
        """Whose step it is."""
        return self._native.rank

    @property
    def world_size(self) -> int:
        """Ranks of the job."""
        return self._native.world_size

    @property
    def source(self) -> str:
        """The file it was made from."""
        return self._native.source

    @property
    def longest_path_ns(self) -> int:
        """Length of the longest path through one step: a lower bound of its time."""
        return self._native.longest_path_ns

    @property
    def work_ns(self) -> numpy.ndarray:
        """Work of every node in nanoseconds, as a read-only array of int64."""
        import numpy

        return numpy.frombuffer(self._native.work_bytes(), dtype=numpy.int64)

    def select(self, query: str) -> list[int]:
        """Rows of the nodes that a query selects."""
        return self._native.select(query)

    def scale(self, query: str, factor: float) -> int:
        """Multiplies the work of the nodes that a query selects; returns how many they are."""
        return self._native.scale(query, factor)

    def set_work(self, nodes: SupportsIndex | Iterable[SupportsIndex], work_ns: int) -> None:
        """Sets the work of nodes, by row."""
        for node in [nodes] if isinstance(nodes, SupportsIndex) else nodes:
            self._native.set_work_ns(operator.index(node), work_ns)

    def remove(self, query: str) -> int:
        """Removes the nodes that a query selects; what came before them is followed by what came
        after. Returns how many they were."""
        return self._native.remove(query)

    def to_pandas(self) -> pandas.DataFrame:
        """The nodes as a pandas DataFrame (needs pyarrow)."""
        import pyarrow

        return pyarrow.table(self.nodes).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The nodes as a polars DataFrame."""
        import polars

        return polars.DataFrame(self.nodes)

    def __len__(self) -> int:
        return self._native.node_count()

    def __repr__(self) -> str:
        nodes, edges = self._native.node_count(), self._native.edge_count()
        return f"<StepGraph of rank {self.rank}: {nodes} nodes, {edges} edges>"


def _from_file_bytes(content: bytes) -> StepGraph:
    return StepGraph(_native.NativeStepGraph.from_file_bytes(content))


def load(*sources: str | os.PathLike[str], **reading: Any) -> Job:
    """Reads profiler traces, execution traces, Chakra files, saved graphs, or a capture's directory.

    Names files, directories or patterns, one file per rank. Keywords are the command's options of
    reading: `ranks="0-7"`, `steps=["0ms", "10ms"]`, `window="10ms..50ms"`, `strict=True`,
    `no_python=True`, `memory_cap="8GiB"`, `threads=4`.
    """
    from ._verbs import written

    arguments, held = written("inspect", sources, reading)
    if held:
        raise TypeError("a job in memory is read already")
    return Job(_native.read(arguments))
