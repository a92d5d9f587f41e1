"""Reading many traces: what is in each, and its steady step as a graph."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .._answer import Answer
from .._errors import UsageError
from .._verbs import ask
from ._run import Backend, Task, run, signature


class Ingested:
    """One file: what `inspect` says of it, and its steady step."""

    def __init__(self, path: str, answer: Answer, graph: bytes | None) -> None:
        self.path = path
        self.answer = answer
        self._graph = graph

    @property
    def has_graph(self) -> bool:
        """Whether a step was found in it."""
        return self._graph is not None

    def save_graph(self, path: str | os.PathLike[str]) -> None:
        """Saves the steady step as the Parquet file that `export --graph` writes."""
        if self._graph is None:
            raise ValueError(f"{self.path} holds no step")
        Path(path).write_bytes(self._graph)

    def __repr__(self) -> str:
        return f"<Ingested {self.path}: {'a step' if self.has_graph else 'no step'}>"


def ingest(
    paths: Iterable[str | os.PathLike[str]],
    *,
    directory: str | os.PathLike[str] | None = None,
    backend: Backend = "ray",
    **reading: Any,
) -> list[Ingested]:
    """Reads each file (or directory of one job) on a worker. Keywords are those of `load`.

    What cannot be read raises after all others have been read and kept.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise UsageError(f"ingest({paths!r})", [f"a list of paths: [{paths!r}]"])
    names = [os.fspath(path) for path in paths]
    tasks = [Task(_read, (name, reading, signature(name)), name) for name in names]
    results = run(tasks, directory, backend)
    return [_unpacked(name, result) for name, result in zip(names, results, strict=True)]


def _read(path: str, reading: dict[str, Any], stamp: list[Any]) -> bytes:
    del stamp  # only tells one task from another
    from .. import load

    job = load(path, **reading)
    answer = ask("inspect", job)
    graph = b""
    if answer.holds:
        with tempfile.TemporaryDirectory(prefix="foretrain-") as scratch:
            file = Path(scratch, "step.parquet")
            ask("export", job, graph=file)
            graph = file.read_bytes()
    head = answer.packed()
    return b"%d %d\n" % (len(head), len(graph)) + head + graph


def _unpacked(path: str, result: bytes) -> Ingested:
    stream = io.BytesIO(result)
    head, graph = (int(size) for size in stream.readline().split())
    answer = Answer.unpacked(stream.read(head))
    return Ingested(path, answer, stream.read(graph) if graph else None)
