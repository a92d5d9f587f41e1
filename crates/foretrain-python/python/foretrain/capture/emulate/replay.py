"""Replays a recorded step on emulated nodes: spins for what was computed, exchanges for real."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from ..comm.quantities import median, quantile
from .emulation import Emulation, Settings
from .recorded import Bucket, Recorded, ReplayError, buckets, expected, read

_LIBRARY = Path(__file__).resolve().parents[3]
#: Nobody waits longer for a replay, in seconds.
_TIMEOUT = 1800.0

__all__ = ["ReplayError", "replay"]


def replay(bundle: str, settings: Settings, strategy: str, steps: int, reason: str | None) -> int:
    """Replays and prints what was measured and expected; returns the exit code.

    With a ``reason`` why nodes cannot be emulated only what is expected of the link is told.
    """
    recorded = read(Path(bundle))
    filled, half = buckets(recorded, strategy)
    total = sum(bucket.size for bucket in filled)
    print(f"bundle      {bundle}: {total / 1e6:.2f} MB of gradients in {len(filled)} bucket(s)")
    print(f"strategy    {strategy}, {settings.nodes} nodes")
    if reason:
        return _by_rule(recorded, filled, half, settings, reason)
    found = _measured(recorded, filled, half, settings, steps)
    times, exchanges = found["steps"], found["exchanges"]
    usual = median(times)
    told = expected(filled, exchanges, recorded.rest)
    low, high = quantile(times, 0.1), quantile(times, 0.9)
    print(f"measured    {usual * 1e3:.2f} ms per step (p10 {low * 1e3:.2f}, p90 {high * 1e3:.2f})")
    print(
        f"expected    {told * 1e3:.2f} ms, {100 * (told / usual - 1):+.1f} %: recorded computing,"
    )
    total_ms = sum(exchanges) * 1e3
    print(f"            and exchanges that take {total_ms:.2f} ms when nothing is computed")
    return 0


def _measured(
    recorded: Recorded, filled: list[Bucket], half: bool, settings: Settings, steps: int
) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory(prefix="foretrain-replay-") as directory:
        plan, answer = Path(directory) / "plan.json", Path(directory) / "answer.json"
        document = {
            "buckets": [[bucket.ready, bucket.size] for bucket in filled],
            "rest": recorded.rest,
            "half": half,
            "steps": steps,
            "answer": str(answer),
        }
        plan.write_text(json.dumps(document), encoding="utf-8")
        paths = [str(_LIBRARY), *filter(None, [os.environ.get("PYTHONPATH")])]
        with Emulation(settings) as emulation:
            outcome = emulation.run(
                [sys.executable, "-m", "foretrain.capture.emulate.replay_rank", str(plan)],
                environment={"PYTHONPATH": os.pathsep.join(paths)},
                timeout=_TIMEOUT,
            )
        if outcome.code or not answer.exists():
            raise ReplayError(outcome.why or "the replay gave no answer")
        found: dict[str, list[float]] = json.loads(answer.read_text(encoding="utf-8"))
        return found


def _by_rule(
    recorded: Recorded, filled: list[Bucket], half: bool, settings: Settings, reason: str
) -> int:
    print(f"not emulated: {reason}")
    if settings.bandwidth is None:
        raise ReplayError("without nodes or --bandwidth nothing can be said of the exchanges")
    ranks = settings.nodes
    share = 2.0 * (ranks - 1) / ranks * (0.5 if half else 1.0)
    exchanges = [
        share * bucket.size * 8.0 / settings.bandwidth + 2.0 * (ranks - 1) * settings.latency
        for bucket in filled
    ]
    told = expected(filled, exchanges, recorded.rest)
    print(
        f"expected    {told * 1e3:.2f} ms per step, by the link's rate alone; processors cost more:"
    )
    print("            foretrain predict BUNDLE --on CLUSTER --gpus N --primitives primitives.toml")
    return 0
