"""Plans of many clusters and sizes, in shards."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from .._answer import Answer
from .._verbs import ask
from ._run import Backend, Task, run, signatures


def plan(
    model: str | os.PathLike[str],
    *,
    shards: int | None = None,
    directory: str | os.PathLike[str] | None = None,
    backend: Backend = "ray",
    **options: Any,
) -> Answer:
    """Plans a model for every cluster and size that is asked for, in `shards` tasks [default: one
    per scenario, 256 at most].

    Keywords are those of `foretrain.plan`. Returns the rows of all scenarios, in their order; they
    are those that `foretrain plan --scenarios` writes.
    """
    with tempfile.TemporaryDirectory(prefix="foretrain-") as scratch:
        scenarios = Path(scratch, "scenarios.jsonl")
        measured = {name: options.get(name) for name in ("kernels", "measured", "hardware")}
        ask("plan", model, write_scenarios=scenarios, **options)
        text = scenarios.read_text(encoding="utf-8")
        count = max(1, len(text.splitlines()))
        shards = min(shards or 256, count)
        stamps = signatures(options)
        tasks = [
            Task(_shard, (text, at + 1, shards, measured, stamps), f"shard {at + 1}")
            for at in range(shards)
        ]
        rows = run(tasks, directory, backend)
        files = []
        for at, part in enumerate(rows):
            files.append(Path(scratch, f"rows-{at}.jsonl"))
            files[-1].write_bytes(part)
        return ask("plan", scenarios=scenarios, merge=files)


def _shard(
    scenarios: str, part: int, parts: int, measured: dict[str, Any], stamps: list[Any]
) -> bytes:
    del stamps  # only tells one task from another
    with tempfile.TemporaryDirectory(prefix="foretrain-") as scratch:
        file = Path(scratch, "scenarios.jsonl")
        file.write_text(scenarios, encoding="utf-8")
        answer = ask("plan", scenarios=file, shard=f"{part}/{parts}", **measured)
    return answer.text.encode()
