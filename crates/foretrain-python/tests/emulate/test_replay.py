"""Replaying captures."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import foretrain
import pytest
from foretrain.capture.emulate import ReplayError, Settings, forecast, replay, why_not
from foretrain.capture.emulate.cluster import NODE, describe
from foretrain.capture.emulate.planned import plan

REASON = why_not()
needs_nodes = pytest.mark.skipif(REASON is not None, reason=f"no nodes here: {REASON}")
# Six gradients of 4.2 MB; a step of about 40 ms.
BUNDLE = Path(__file__).parents[4] / "examples" / "capture-tiny"
SLOW = Settings(nodes=2, bandwidth=100e6)


def planned(tmp_path: Path, strategy: str, nodes: int = 2):
    hardware = describe(tmp_path / "hardware.toml", 100e6)
    return plan(foretrain.load(BUNDLE), nodes, strategy, on=NODE, hardware=hardware)


def test_a_plan_is_what_the_engine_makes_of_a_strategy(tmp_path: Path):
    ddp = planned(tmp_path, "ddp")
    assert [(one.size, one.half, one.copied) for one in ddp.exchanges] == [(4247592, False, True)]
    assert ddp.gradients == 4247592
    small = planned(tmp_path, "fuse(32KiB)")
    assert [one.size for one in small.exchanges] == [41000, 4206592]
    assert [one.ready for one in small.exchanges] == sorted(one.ready for one in small.exchanges)
    assert not any(one.copied for one in small.exchanges)
    half = planned(tmp_path, "fuse | compress")
    assert [one.half for one in half.exchanges] == [True]
    parts = planned(tmp_path, "fuse | partition(1MiB)")
    assert sum(one.size for one in parts.exchanges) == 4247592 and len(parts.exchanges) == 5


def test_what_is_computed_adds_up_to_the_step_alone(tmp_path: Path):
    found = planned(tmp_path, "ddp")
    alone = found.forecast.sizes[0].step_time.value_ns / 1e9
    assert 0.0 < found.exchanges[-1].ready < alone
    assert found.exchanges[-1].ready + found.rest == pytest.approx(alone)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("zero-2", "reduce-scatter"),
        ("fuse | compress(top-k)", "top-k"),
        ("fuse | ring", "ring"),
        ("p3", "cannot be replayed|servers"),
        ("accumulate(2, deferred=false) | fuse", "micro-batches"),
    ],
)
def test_what_cannot_be_done_for_real_is_told(tmp_path: Path, strategy: str, words: str):
    with pytest.raises(ReplayError, match=words):
        planned(tmp_path, strategy)


def test_a_strategy_that_is_none_is_the_engine_s_to_refuse(tmp_path: Path):
    with pytest.raises(foretrain.ForetrainError, match="gossip"):
        planned(tmp_path, "gossip")


def test_without_nodes_primitives_answer(tmp_path: Path):
    primitives = tmp_path / "primitives.toml"
    foretrain.calibrate.primitives(sizes="4K,64K,1M", budget="500ms", out=primitives)
    told = forecast(BUNDLE, SLOW, "fuse", primitives=primitives)
    # 4.2 MB at 12.5 MB/s.
    assert 0.340 < told.predicted[0] < 0.5
    assert not told.steps and "measured" not in str(told)
    quick = forecast(BUNDLE, Settings(nodes=2, bandwidth=1e9), "fuse", primitives=primitives)
    assert quick.predicted[0] < told.predicted[0] / 3
    with pytest.raises(ReplayError, match="--bandwidth"):
        forecast(BUNDLE, Settings(nodes=2), primitives=primitives)


@needs_nodes
def test_a_replay_takes_what_is_forecast():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found = replay(BUNDLE, SLOW, "fuse", steps=5)
    # 4.2 MB over 100 Mbit/s with headers, and computing; other load may double that.
    assert 0.340 < found.measured < 0.9
    value, low, high = found.predicted
    assert low <= value <= high and 0.340 < value < 0.9
    assert re.search(r"forecast .* %", str(found))


@needs_nodes
def test_the_command_replays_and_refuses(tmp_path: Path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    bundle = tmp_path / "bundle"
    shutil.copytree(BUNDLE, bundle)

    def command(*more: str) -> subprocess.CompletedProcess[str]:
        base = [sys.executable, "-m", "foretrain.capture.emulate", "--nodes", "2"]
        base += ["--bandwidth", "1gbit", "--replay", str(bundle)]
        return subprocess.run([*base, *more], capture_output=True, text=True, timeout=300)

    done = command("--steps", "3", "--on", "cpu-node", "--strategy", "fuse | compress")
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout and "forecast" in done.stdout
    refused = command("--strategy", "zero-2")
    assert refused.returncode == 2 and "reduce-scatter" in refused.stderr
