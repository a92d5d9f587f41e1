"""Forecasts from one worker's capture and two workers' collectives."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import foretrain
from foretrain.capture.comm.quantities import median
from foretrain.capture.emulate import cluster


@dataclass(frozen=True)
class Recorded:
    """What is known of a model from one worker."""

    #: The capture of the round whose step is the median of all rounds.
    bundle: Path
    #: Its step without the profiler, ms.
    step: float
    #: Bytes of gradients over what DDP itself costs one worker, GB/s.
    copies: float


@dataclass(frozen=True)
class Forecast:
    """Milliseconds of a step: the value and the interval of 80 %."""

    value: float
    low: float
    high: float


def recorded(out: Path, models: Sequence[str]) -> dict[str, Recorded]:
    """One worker's captures."""
    rows = [json.loads(line) for line in (out / "recorded/node0/steps.jsonl").open()]
    known = {}
    for model in models:
        bundles = sorted((out / "recorded/node0").glob(f"{model}-*"))
        by_step = sorted((_step_ms(bundle), bundle) for bundle in bundles)
        step, bundle = by_step[(len(by_step) - 1) // 2]
        own = [row for row in rows if row["model"] == model]
        under_ddp = median(median(row["under_ddp_ms"]) - median(row["alone_ms"]) for row in own)
        parameters = _captured(bundle)["model"]["parameters"]
        gradients = sum(one["bytes"] for one in parameters if one["requires_grad"])
        known[model] = Recorded(bundle, step, gradients / max(under_ddp, 0.01) / 1e6)
    return known


def _captured(bundle: Path) -> dict:
    return json.loads((bundle / "rank0.capture.json").read_text())


def _step_ms(bundle: Path) -> float:
    return median(_captured(bundle)["steps"]["unprofiled"]["wall_ns"]) / 1e6


def calibrate(out: Path, rate: int) -> tuple[Path, Path]:
    """A cluster file from two workers' collectives at a rate, and the hardware it is based on."""
    hardware = cluster.describe(out / f"hardware-{rate}.toml", rate * 1e6)
    table = out / f"comm-{rate}.csv"
    merge(sorted((out / f"comm-{rate}").glob("*/comm.csv")), table)
    return hardware, cluster.calibrate(table, hardware, out / f"cluster-{rate}.toml")


def merge(tables: Sequence[Path], merged: Path) -> None:
    """One table of several rounds: medians of their times and of their processor times."""
    times: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for table in tables:
        with open(table, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                key = (row["op"], row["world"], int(row["bytes"]))
                times[key].append((float(row["time_us"]), float(row["cpu_us"])))
    with open(merged, "w", encoding="utf-8") as file:
        file.write("world,bytes,time_us,op,cpu_us\n")
        for (operation, world, size), found in sorted(times.items()):
            time, cpu = (median(values) for values in zip(*found, strict=True))
            file.write(f"{world},{size},{time:.1f},{operation},{cpu:.1f}\n")


def forecast(
    known: Recorded, files: tuple[Path, Path], worlds: Sequence[int], bucket: float
) -> dict[int, Forecast]:
    """Step times of a model by number of workers. The capture gives the step without the profiler,
    its spread, gradients and buffers."""
    hardware, calibrated = files
    answer = foretrain.predict(
        known.bundle,
        on=calibrated,
        hardware=hardware,
        gpus=worlds,
        bucket_cap_mb=bucket,
        bucket_copies=f"{known.copies:.4f}GB/s",
        cores=0.5,
    )
    found = {}
    for size in answer.sizes:
        step = size.step_time
        found[size.gpus] = Forecast(
            *(ns / 1e6 for ns in (step.value_ns, step.low_ns, step.high_ns))
        )
    return found
