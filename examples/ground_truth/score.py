"""How forecasts compare with what was measured."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from forecast import Forecast
from foretrain.capture.comm.quantities import median, quantile

Key = tuple[str, int, int, float]


@dataclass(frozen=True)
class Measured:
    """Milliseconds of a step: the median of the rounds' medians, and the rounds' spread."""

    value: float
    #: Half the distance of the rounds' extremes, over the value.
    noise: float


@dataclass(frozen=True)
class Score:
    """One configuration."""

    model: str
    world: int
    mbit: int
    bucket_mb: float
    truth: Measured
    answer: Forecast
    #: One worker's step, in milliseconds.
    alone: float

    @property
    def error(self) -> float:
        """Relative error."""
        return self.answer.value / self.truth.value - 1.0


def measured(out: Path) -> dict[Key, Measured]:
    """What was measured of every configuration."""
    rounds: dict[Key, list[float]] = defaultdict(list)
    for line in (out / "measured.jsonl").open():
        row = json.loads(line)
        key = (row["model"], row["world"], row["mbit"], row["bucket_mb"])
        rounds[key].append(median(row["steps_ms"]))
    return {key: _summary(medians) for key, medians in rounds.items()}


def _summary(medians: list[float]) -> Measured:
    usual = median(medians)
    return Measured(usual, 0.5 * (max(medians) - min(medians)) / usual)


@dataclass(frozen=True)
class Order:
    """Pairs of a model's configurations by which is quicker."""

    right: int
    wrong: list[tuple[Score, Score]]
    ties: int


def order(scores: Sequence[Score]) -> Order:
    """Compares every two configurations of a model. Two that differ by less than the noise of both
    are a tie and do not count."""
    right, ties = 0, 0
    wrong = []
    for a, b in combinations(scores, 2):
        if a.model != b.model:
            continue
        difference = abs(a.truth.value - b.truth.value)
        if difference <= a.truth.noise * a.truth.value + b.truth.noise * b.truth.value:
            ties += 1
        elif (a.truth.value < b.truth.value) == (a.answer.value < b.answer.value):
            right += 1
        else:
            wrong.append((a, b))
    return Order(right, wrong, ties)


def report(scores: Sequence[Score]) -> str:
    """The table and what it comes to, as Markdown."""
    lines = [
        "| model | workers | Mbit/s | bucket MiB | alone ms | measured ms | noise % | forecast ms "
        "| error % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for s in scores:
        lines.append(
            f"| {s.model} | {s.world} | {s.mbit} | {s.bucket_mb:g} | {s.alone:.1f} | "
            f"{s.truth.value:.1f} | {100 * s.truth.noise:.1f} | {s.answer.value:.1f} | "
            f"{100 * s.error:+.1f} |"
        )
    lines += ["", *_summary_lines(scores)]
    return "\n".join(lines)


def _summary_lines(scores: Sequence[Score]) -> list[str]:
    sizes = [abs(s.error) for s in scores]
    inside = sum(s.answer.low <= s.truth.value <= s.answer.high for s in scores)
    found = order(scores)
    lines = [
        f"Of {len(scores)} configurations the median error is {100 * median(sizes):.1f} %, the "
        f"ninth decile {100 * quantile(sizes, 0.9):.1f} %, the worst {100 * max(sizes):.1f} %, "
        f"the mean {100 * sum(s.error for s in scores) / len(scores):+.1f} %. {inside} are within "
        "the forecast's interval of 80 %.",
        f"Of {found.right + len(found.wrong)} pairs of a model's configurations that differ by "
        f"more than their noise, {found.right} are in the right order; {found.ties} are ties.",
    ]
    for a, b in found.wrong:
        lines.append(f"- wrong: {_name(a)} and {_name(b)}, {_ratio(a, b):.1f} % apart")
    return lines


def _ratio(a: Score, b: Score) -> float:
    return 100 * abs(a.truth.value / b.truth.value - 1.0)


def _name(score: Score) -> str:
    return (
        f"{score.model} with {score.world} workers, {score.mbit} Mbit/s, {score.bucket_mb:g} MiB"
        f" ({score.truth.value:.1f} ms, forecast {score.answer.value:.1f})"
    )
