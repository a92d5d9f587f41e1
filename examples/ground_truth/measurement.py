"""Measuring on emulated nodes: one worker's recordings, collectives of two, steps of two and
four."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foretrain.capture.emulate import Emulation, Settings

_HERE = Path(__file__).resolve().parent

#: Every node has half a core: two share one, in all runs.
NODES_PER_CORE = 2
#: A round of any part takes no longer than this, in seconds.
_TIMEOUT = 900.0


class MeasurementError(Exception):
    """A run on the nodes failed."""


def measure(
    out: Path,
    models: Sequence[str],
    worlds: Sequence[int],
    rates: Sequence[int],
    buckets: Sequence[float],
    rounds: int,
    steps: int,
) -> None:
    """Measures everything ``rounds`` times, by turns, so that no configuration has a moment of the
    machine for itself. ``rates`` are Mbit/s, ``buckets`` MiB."""
    settings = Settings(max(worlds), nodes_per_core=NODES_PER_CORE, priority=True)
    with Emulation(settings) as emulation:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            _record(emulation, out, models, steps, number)
            _collectives(emulation, out, rates, number)
            for world in worlds:
                # Every round in another order, too.
                asked = [(m, r, b) for m in models for r in rates for b in buckets]
                turned = asked[number:] + asked[:number] if number % 2 else asked[::-1]
                plan = {
                    "what": "measure",
                    "out": str(out / "measured.jsonl"),
                    "configurations": turned,
                    "steps": steps,
                }
                _run_worker(emulation, out, plan, world, alone=False)


def _record(
    emulation: Emulation, out: Path, models: Sequence[str], steps: int, number: int
) -> None:
    """Captures one worker. Its neighbour on the core records too, for itself."""
    say("  one worker")
    plan: dict[str, Any] = {
        "what": "record",
        "out": str(out / "recorded"),
        "models": models,
        "steps": steps,
    }
    plan["round"] = number
    emulation.limit(None)
    _run_worker(emulation, out, plan, NODES_PER_CORE, alone=True)


def _collectives(emulation: Emulation, out: Path, rates: Sequence[int], number: int) -> None:
    """Measures collectives of two workers at each rate."""
    for rate in rates:
        say(f"  collectives of two workers at {rate} Mbit/s")
        emulation.limit(rate * 1e6)
        command = [sys.executable, "-m", "foretrain.capture.comm", "--tables", "comm"]
        command += ["--ops", "all_reduce,broadcast", "--sizes", "1K..4M", "--budget", "8s"]
        command += ["--out", str(out / f"comm-{rate}" / str(number)), "--overwrite", "--quiet"]
        _run(emulation, out, command, 2, alone=False)


def _run_worker(
    emulation: Emulation, out: Path, plan: dict[str, Any], nodes: int, *, alone: bool
) -> None:
    if not alone:
        say(f"  {len(plan['configurations'])} configurations on {nodes} workers")
    path = out / "plan.json"
    path.write_text(json.dumps(plan))
    _run(emulation, out, [sys.executable, str(_HERE / "worker.py"), str(path)], nodes, alone=alone)


def _run(emulation: Emulation, out: Path, command: list[str], nodes: int, *, alone: bool) -> None:
    with open(out / "log.txt", "ab") as log:
        outcome = emulation.run(
            command,
            nodes=nodes,
            alone=alone,
            output=log,
            timeout=_TIMEOUT,
        )
    if outcome.code:
        raise MeasurementError(f"{outcome.why}; see {out / 'log.txt'}")


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
