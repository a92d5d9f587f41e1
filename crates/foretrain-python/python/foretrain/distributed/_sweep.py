"""One verb at every point of a grid."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._answer import Answer, Frames
from .._errors import UsageError
from .._job import Job
from .._verbs import ask, verbs
from ._run import Backend, Task, run, signatures


class Sweep(Frames):
    """Answers at the points of a grid, in the order of the grid: the last axis runs fastest."""

    def __init__(self, points: list[dict[str, Any]], answers: list[Answer]) -> None:
        self.points = points
        self.answers = answers

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Any:
        return iter(zip(self.points, self.answers, strict=True))

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of all answers (see `Answer.rows`), with the point of each in front."""
        return [
            {**point, **row}
            for point, answer in zip(self.points, self.answers, strict=True)
            for row in answer.rows(table)
        ]

    def __repr__(self) -> str:
        return f"<Sweep: {len(self)} points>"


def sweep(
    verb: str,
    *given: Any,
    grid: Mapping[str, Iterable[Any]],
    directory: str | os.PathLike[str] | None = None,
    backend: Backend = "ray",
    **fixed: Any,
) -> Sweep:
    """Asks a verb at every point of a grid of its keywords.

        sweep("predict", "traces/", grid={"on": ["dgx-a100", "dgx-h100"], "gpus": [64, 512]})
        sweep("estimate", "llama-3-8b", on="dgx-h100", gpus=64, batch=512,
              grid={"parallel": ["tp=2", "tp=4", "tp=4,pp=2"]})

    Sources are named by path: a job in memory cannot be sent to workers.
    """
    if verb not in verbs():
        raise UsageError(f"no verb {verb!r}", [f"verbs are {', '.join(verbs())}"])
    if any(isinstance(one, Job) for one in given):
        raise UsageError("a job in memory cannot be sent to workers", ["name its files instead"])
    sources = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in given]
    for name, values in grid.items():
        if isinstance(values, (str, bytes, os.PathLike)):
            raise UsageError(f"grid[{name!r}] is {values!r}", [f"a list: [{values!r}]"])
    axes = {name: list(values) for name, values in grid.items()}
    # What can be gone through once is needed at every point.
    fixed = {name: _listed(value) for name, value in fixed.items()}
    points = [
        dict(zip(axes, map(_listed, values), strict=True))
        for values in itertools.product(*axes.values())
    ]
    shared = signatures(sources, fixed)
    tasks = []
    for point in points:
        name = f"{verb} at {', '.join(f'{key}={value}' for key, value in point.items())}"
        stamps = [*shared, *signatures(point)]
        tasks.append(Task(_point, (verb, sources, {**fixed, **point}, stamps), name))
    results = run(tasks, directory, backend)
    return Sweep(points, [Answer.unpacked(result) for result in results])


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Iterator) else value


def _point(verb: str, sources: list[Any], options: dict[str, Any], stamps: list[Any]) -> bytes:
    del stamps  # only tells one task from another
    return ask(verb, *sources, **options).packed()
