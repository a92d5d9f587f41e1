"""Forecasts from one worker's recording and two workers' collectives, by the ``foretrain``
command."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretrain.capture.comm.quantities import median, quantile

#: What is known of a node beside its measured links. Compute keeps its recorded time, so no
#: figure of the core itself matters.
_HARDWARE = """\
[devices.half-core]
kind = "cpu"
vendor = "other"
memory = "8 GiB"
memory_bandwidth = "10 GB/s"
peak = {{ f32 = "50 GFLOP/s" }}
source = "half a core"

[nodes.emulated]
device = "half-core"
devices = 1
nics = 1
nic = "ethernet"
nic_bandwidth = "{rate} Mbit/s"
source = "an emulated link"
"""


class ForecastError(Exception):
    """The command failed."""


@dataclass(frozen=True)
class Recorded:
    """What is known of a model from one worker; milliseconds."""

    step: float
    #: Relative standard deviation of a step.
    spread: float
    #: What DDP itself costs one worker.
    ddp: float
    gradient_bytes: int
    buffer_bytes: int


@dataclass(frozen=True)
class Forecast:
    """Milliseconds of a step: the value and the interval of 80 %."""

    value: float
    low: float
    high: float


def recorded(out: Path, models: Sequence[str]) -> dict[str, Recorded]:
    """One worker's records; medians over all rounds."""
    rows = [json.loads(line) for line in (out / "recorded/node0/steps.jsonl").open()]
    known = {}
    for model in models:
        own = [row for row in rows if row["model"] == model]
        usual = median(median(row["steps_ms"]) for row in own)
        # The spread of steps around their own round: a machine that slows down is not late at
        # random.
        around = [step / median(row["steps_ms"]) for row in own for step in row["steps_ms"]]
        under_ddp = median(median(row["under_ddp_ms"]) - median(row["steps_ms"]) for row in own)
        known[model] = Recorded(
            step=usual,
            spread=(quantile(around, 0.9) - quantile(around, 0.1)) / 2.56,
            ddp=max(under_ddp, 0.01),
            gradient_bytes=own[0]["gradient_bytes"],
            buffer_bytes=own[0]["buffer_bytes"],
        )
    return known


def calibrate(foretrain: str, out: Path, rate: int) -> tuple[Path, Path]:
    """A cluster file from two workers' collectives at a rate, and the hardware it is based on."""
    hardware, cluster = out / f"hardware-{rate}.toml", out / f"cluster-{rate}.toml"
    hardware.write_text(_HARDWARE.format(rate=rate))
    table = out / f"comm-{rate}.csv"
    merge(sorted((out / f"comm-{rate}").glob("*/comm.csv")), table)
    command = [foretrain, "calibrate", "collectives", str(table), "--on", "emulated"]
    _call([*command, "--hardware", str(hardware), "-o", str(cluster), "--force"])
    return hardware, cluster


def merge(tables: Sequence[Path], merged: Path) -> None:
    """One table of several rounds: medians of their times."""
    times: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for table in tables:
        with open(table, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                key = (row["op"], row["world"], int(row["bytes"]))
                times[key].append(float(row["time_us"]))
    with open(merged, "w", encoding="utf-8") as file:
        file.write("world,bytes,time_us,op\n")
        for (operation, world, size), found in sorted(times.items()):
            file.write(f"{world},{size},{median(found):.1f},{operation}\n")


def forecast(
    foretrain: str,
    out: Path,
    model: str,
    known: Recorded,
    cluster: tuple[Path, Path],
    worlds: Sequence[int],
    bucket: float,
) -> dict[int, Forecast]:
    """Step times of a model by number of workers."""
    hardware, calibrated = cluster
    command = [foretrain, "predict", str(out / f"recorded/node0/{model}.json.gz"), "--json"]
    command += ["--on", str(calibrated), "--hardware", str(hardware)]
    command += ["--gpus", ",".join(map(str, worlds)), "--bucket-cap-mb", f"{bucket:g}"]
    command += ["--step-time", f"{known.step:.3f}ms", "--step-spread", f"{100 * known.spread:.2f}%"]
    command += ["--bucket-copies", f"{known.gradient_bytes / known.ddp / 1e6:.4f}GB/s"]
    command += ["--cores", "0.5"]
    if known.buffer_bytes:
        command += ["--buffer-bytes", str(known.buffer_bytes)]
    answer: dict[str, Any] = json.loads(_call(command))
    found = {}
    for size in answer["sizes"]:
        step = size["step_time"]
        found[size["gpus"]] = Forecast(
            *(step[f"{key}_ns"] / 1e6 for key in ("value", "low", "high"))
        )
    return found


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ForecastError(f"{' '.join(command)}:\n{done.stderr.strip()}")
    return done.stdout
