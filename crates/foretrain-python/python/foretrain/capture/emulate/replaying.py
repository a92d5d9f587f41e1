"""Replays a recorded step on emulated nodes: spins for what was computed, exchanges for real."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..comm.quantities import median, quantile
from . import cluster
from .emulation import Emulation, Settings
from .planned import Plan, ReplayError, plan

_LIBRARY = Path(__file__).resolve().parents[3]
#: Nobody waits longer for a part of a replay, in seconds.
_TIMEOUT = 1800.0
#: Seconds that collectives are measured.
_BUDGET = 8
_SMALLEST = 1024

__all__ = ["Replay", "ReplayError", "forecast", "replay"]


@dataclass(frozen=True)
class Replay:
    """A replay and its forecast; times are seconds."""

    plan: Plan
    #: Steps as they went; empty where nodes could not be emulated.
    steps: tuple[float, ...]

    @property
    def measured(self) -> float:
        """The median step."""
        return median(list(self.steps))

    @property
    def predicted(self) -> tuple[float, float, float]:
        """The forecast of a step, and the ends of its interval of 80 %."""
        step = self.plan.forecast.sizes[-1].step_time
        return step.value_ns / 1e9, step.low_ns / 1e9, step.high_ns / 1e9

    def __str__(self) -> str:
        value, low, high = (seconds * 1e3 for seconds in self.predicted)
        size = self.plan.forecast.sizes[-1]
        lines = [
            f"gradients   {self.plan.gradients / 1e6:.2f} MB in "
            f"{len(self.plan.exchanges)} exchange(s), {size.gpus} nodes"
        ]
        error = ""
        if self.steps:
            steps = list(self.steps)
            p10, p90 = quantile(steps, 0.1) * 1e3, quantile(steps, 0.9) * 1e3
            lines.append(
                f"measured    {self.measured * 1e3:.2f} ms per step (p10 {p10:.2f}, p90 {p90:.2f})"
            )
            error = f", {100 * (value / (self.measured * 1e3) - 1):+.1f} %"
        exposed = size.exposed_communication_ns / 1e6
        lines += [
            f"forecast    {value:.2f} ms (80 %: {low:.2f} to {high:.2f}){error}",
            f"            of which {exposed:.2f} ms are communication that nothing hides",
        ]
        return "\n".join(lines)


def replay(
    bundle: str | os.PathLike[str],
    settings: Settings,
    strategy: str = "ddp",
    steps: int = 20,
    on: str | os.PathLike[str] | None = None,
) -> Replay:
    """Replays a capture's step by a strategy, as `foretrain strategies` lists them.

    The forecast is for the cluster ``on``, or for one that is calibrated by collectives of the
    emulated nodes, measured before.
    """
    import foretrain

    # Planned twice, read once.
    job = foretrain.load(bundle)
    with tempfile.TemporaryDirectory(prefix="foretrain-replay-") as name:
        directory = Path(name)
        with Emulation(settings) as emulation:
            options = _options(settings)
            if on is None:
                hardware = cluster.describe(directory / "hardware.toml", settings.bandwidth)
                options |= {"on": cluster.NODE, "hardware": hardware}
                rough = plan(job, settings.nodes, strategy, **options)
                table = _collectives(emulation, directory, rough)
                options["on"] = cluster.calibrate(table, hardware, directory / "cluster.toml")
            else:
                options["on"] = on
            planned = plan(job, settings.nodes, strategy, **options)
            measured = _measured(emulation, directory, planned, steps, options["cores"])
            return Replay(planned, tuple(measured))


def forecast(
    bundle: str | os.PathLike[str],
    settings: Settings,
    strategy: str = "ddp",
    on: str | os.PathLike[str] | None = None,
    primitives: str | os.PathLike[str] | None = None,
) -> Replay:
    """What would be forecast of a replay, where nodes cannot be emulated: from the link's rate and
    from ``primitives``, or those of this machine, measured now."""
    import foretrain

    options = _options(settings)
    with tempfile.TemporaryDirectory(prefix="foretrain-replay-") as name:
        directory = Path(name)
        if on is None:
            if settings.bandwidth is None:
                raise ReplayError(
                    "nothing can be said of exchanges without the links: give --bandwidth, or a "
                    "cluster with --on"
                )
            hardware = cluster.describe(directory / "hardware.toml", settings.bandwidth)
            options |= {"on": cluster.NODE, "hardware": hardware}
        else:
            options["on"] = on
        if primitives is None:
            primitives = directory / "primitives.toml"
            foretrain.calibrate.primitives(out=primitives, budget=f"{_BUDGET}s")
        options["primitives"] = primitives
        job = foretrain.load(bundle)
        return Replay(plan(job, settings.nodes, strategy, **options), ())


def _options(settings: Settings) -> dict[str, Any]:
    """What of a forecast's options the nodes decide: how much of a core each has."""
    if settings.quota is not None:
        return {"cores": settings.quota}
    if settings.nodes_per_core is not None:
        return {"cores": 1.0 / settings.nodes_per_core}
    return {"cores": min(1.0, len(os.sched_getaffinity(0)) / settings.nodes)}


def _collectives(emulation: Emulation, directory: Path, rough: Plan) -> Path:
    """Measures what the exchanges need."""
    out = directory / "comm"
    sizes = [_SMALLEST]
    while sizes[-1] < rough.gradients:
        sizes.append(sizes[-1] * 4)
    command = ["foretrain.capture.comm", "--tables", "comm", "--ops", "all_reduce,broadcast"]
    command += ["--sizes", ",".join(map(str, sizes)), "--budget", f"{_BUDGET}s"]
    _run(emulation, [*command, "--out", str(out), "--overwrite", "--quiet"])
    return out / "comm.csv"


def _measured(
    emulation: Emulation, directory: Path, planned: Plan, steps: int, cores: float
) -> list[float]:
    told, answer = directory / "plan.json", directory / "answer.json"
    told.write_text(planned.to_json(), encoding="utf-8")
    rank = "foretrain.capture.emulate.replay_rank"
    _run(emulation, [rank, str(told), str(steps), str(min(1.0, cores)), str(answer)])
    found: list[float] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def _run(emulation: Emulation, module: Sequence[str]) -> None:
    paths = [str(_LIBRARY), *filter(None, [os.environ.get("PYTHONPATH")])]
    outcome = emulation.run(
        [sys.executable, "-m", *module],
        environment={"PYTHONPATH": os.pathsep.join(paths)},
        timeout=_TIMEOUT,
    )
    if outcome.code:
        raise ReplayError(outcome.why or f"{module[0]} failed")
