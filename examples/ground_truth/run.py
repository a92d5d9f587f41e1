"""Holds forecasts against measurements on emulated nodes, from end to end.

    python examples/ground_truth/run.py

captures three small trainings on one worker, measures collectives of two, forecasts two and four
workers at three link rates and two bucket sizes, then measures all of these, and writes a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forecast import calibrate, forecast, recorded
from foretrain import ForetrainError
from foretrain.capture.emulate import EmulationError, why_not
from measurement import MeasurementError, measure, say
from score import Score, measured, report

MODELS = ("cnn", "transformer", "recommender")
WORLDS = (2, 4)
RATES = (1000, 300, 100)
BUCKETS = (0.5, 25.0)


def main() -> int:
    """Measures, forecasts and reports; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("ground-truth"), help="where files go")
    parser.add_argument(
        "--rounds", type=int, default=6, help="times that everything is measured (6)"
    )
    parser.add_argument("--steps", type=int, default=6, help="steps of a measurement (6)")
    parser.add_argument(
        "--keep", action="store_true", help="forecast from what --out holds already"
    )
    parser.add_argument("--report", type=Path, help="write the table as Markdown here too")
    asked = parser.parse_args()
    try:
        if not asked.keep:
            reason = _why_skip()
            if reason:
                say(f"skipped: {reason}")
                return 0
            if asked.out.exists():
                return _fail(
                    f"{asked.out} is there already: give another --out, or --keep to use it"
                )
            asked.out.mkdir(parents=True)
            measure(asked.out, MODELS, WORLDS, RATES, BUCKETS, asked.rounds, asked.steps)
        score = _score(asked.out)
    except (EmulationError, MeasurementError, ForetrainError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    text = report(score)
    print(text)
    if asked.report:
        asked.report.write_text(text + "\n")
    return 0


def _why_skip() -> str | None:
    try:
        import torch.distributed  # noqa: F401
    except ImportError:
        return "PyTorch is not installed"
    return why_not()


def _score(out: Path) -> list[Score]:
    known = recorded(out, MODELS)
    truth = measured(out)
    clusters = {rate: calibrate(out, rate) for rate in RATES}
    scores = []
    for model in MODELS:
        for rate in RATES:
            for bucket in BUCKETS:
                answers = forecast(known[model], clusters[rate], WORLDS, bucket)
                for world in WORLDS:
                    key = (model, world, rate, bucket)
                    scores.append(Score(*key, truth[key], answers[world], known[model].step))
    return scores


def _fail(message: str) -> int:
    say(f"error: {message}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
