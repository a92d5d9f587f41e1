"""What a capture costs outside its profiled window."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from foretrain.capture import capture
from toy import Toy

PAIRS = 150
# Part of the step. What is aimed at is 1 %; on a busy machine the paired comparison itself has
# more noise than that.
MOST_OWN = 0.01
MOST_PAIRED = 0.05


def test_the_recorder_costs_less_than_a_hundredth_of_a_step(tmp_path: Path) -> None:
    """Steps with and without the recorder in turn, so that both meet the same machine."""
    torch.set_num_threads(1)
    toy = Toy(1024)
    batches = toy.batches(2, samples=512)
    with_recorder, without = [], []
    recorder = capture(
        tmp_path / "bundle",
        model=toy.model,
        optimizer=toy.optimizer,
        warmup=10,
        timed=PAIRS,
        gradients=0,
        profiled=0,
    )
    with recorder:
        loader = recorder.loader(_endless(batches))
        recorded, plain = iter(loader), _endless(batches)
        for _ in range(10):
            toy.train(next(recorded))
            recorder.step()

        def recorded_step() -> int:
            # What ran since the last step is no part of the capture's next.
            recorder.restart_clock()
            started = time.perf_counter_ns()
            toy.train(next(recorded))
            recorder.step()
            return time.perf_counter_ns() - started

        def plain_step() -> int:
            started = time.perf_counter_ns()
            toy.train(next(plain))
            return time.perf_counter_ns() - started

        for pair in range(PAIRS):
            # Which of two comes first must not matter.
            if pair % 2:
                without.append(plain_step())
                with_recorder.append(recorded_step())
            else:
                with_recorder.append(recorded_step())
                without.append(plain_step())
    paired = median(a / b for a, b in zip(with_recorder, without, strict=True)) - 1.0
    timed = json.loads((tmp_path / "bundle" / "rank0.capture.json").read_text())
    steps = timed["steps"]["unprofiled"]
    # Medians, as a process that waits for its core within our code waits for milliseconds.
    own = median(steps["recorder_ns"]) / median(steps["wall_ns"])
    print(f"own {own:.4%} of {median(without) / 1e6:.2f} ms, paired {paired:+.2%}")
    assert len(steps["wall_ns"]) == PAIRS
    assert 0.0 < own < MOST_OWN
    assert paired < MOST_PAIRED


def test_a_finished_recorder_costs_next_to_nothing(tmp_path: Path) -> None:
    with capture(tmp_path / "bundle", warmup=1, timed=0, gradients=0, profiled=0) as recorder:
        recorder.step()
        assert recorder.idle
        times = []
        for _ in range(1000):
            started = time.perf_counter_ns()
            recorder.step()
            times.append(time.perf_counter_ns() - started)
    # A method call and a comparison; microseconds would mean that something is still attached.
    assert median(times) < 5000


def _endless(batches):  # type: ignore[no-untyped-def]
    while True:
        yield from batches
