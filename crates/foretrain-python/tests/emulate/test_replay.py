"""Replaying captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretrain.capture.emulate import Settings, why_not
from foretrain.capture.emulate.recorded import Bucket, ReplayError, buckets, expected, read
from foretrain.capture.emulate.replay import replay

REASON = why_not()
MIB = 1 << 20


def bundle(tmp_path: Path, **more: object) -> Path:
    """Three gradients, the last one ready first, and an update of 2 ms."""
    document = {
        "foretrain_capture": 1,
        "gradients": {
            "ready_ns": [9_000_000, 6_000_000, 4_000_000, None],
            "backward_end_ns": 9_000_000,
            "optimizer_start_ns": 10_000_000,
            "step_end_ns": 12_000_000,
        },
        "model": {"parameters": [{"bytes": MIB}, {"bytes": MIB}, {"bytes": MIB}, {"bytes": 8}]},
        **more,
    }
    (tmp_path / "rank0.capture.json").write_text(json.dumps(document))
    return tmp_path


def test_gradients_fill_buckets_as_they_become_ready(tmp_path: Path):
    recorded = read(bundle(tmp_path))
    assert recorded.rest == pytest.approx(0.002)
    usual, half = buckets(recorded, "ddp")
    # The first bucket of DDP's own holds 1 MiB, the others 25.
    assert usual == [Bucket(0.004, MIB), Bucket(0.009, 2 * MIB)] and not half
    assert len(buckets(recorded, "ddp:1")[0]) == 3
    assert buckets(recorded, "fuse")[0] == [Bucket(0.009, 3 * MIB)]
    assert buckets(recorded, "half:2") == ([Bucket(0.006, 2 * MIB), Bucket(0.009, MIB)], True)
    for strategy, words in [
        ("gossip", "no strategy"),
        ("ddp:x", "no bucket size"),
        ("fuse:1", "no str"),
    ]:
        with pytest.raises(ReplayError, match=words):
            buckets(recorded, strategy)


def test_a_recorded_cap_is_kept(tmp_path: Path):
    ddp = {"bucket_cap_bytes": 2 * MIB, "bucket_cap_is_default": False}
    recorded = read(bundle(tmp_path, parallel={"ddp": ddp}))
    assert [b.size for b in buckets(recorded, "ddp")[0]] == [2 * MIB, MIB]


def test_exchanges_follow_one_another():
    filled = [Bucket(1.0, 1), Bucket(2.0, 1)]
    # Hidden but for the last; in each other's way; computing is the longer.
    assert expected(filled, [0.5, 0.5], 0.25) == 2.75
    assert expected(filled, [3.0, 0.5], 0.25) == 4.75
    assert expected(filled, [0.0, 0.0], 0.25) == 2.25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no capture"),
        ("[]", "no capture of form 1"),
        ('{"foretrain_capture": 2}', "no capture of form 1"),
        ('{"foretrain_capture": 1}', "does not tell when gradients are ready"),
        ('{"foretrain_capture": 1, "gradients": 3}', "does not tell"),
    ],
)
def test_what_is_no_capture_is_told(tmp_path: Path, text: str, words: str):
    path = tmp_path / "rank0.capture.json"
    path.write_text(text)
    with pytest.raises(ReplayError, match=words):
        read(tmp_path)


def test_without_nodes_the_link_s_rate_answers(tmp_path: Path, capsys):
    settings = Settings(nodes=2, bandwidth=100e6)
    assert replay(str(bundle(tmp_path)), settings, "fuse", 5, "no reason") == 0
    # 3 MiB at 12.5 MB/s after 9 ms, then 2 ms.
    assert "expected    262.66 ms" in capsys.readouterr().out
    with pytest.raises(ReplayError, match="--bandwidth"):
        replay(str(bundle(tmp_path)), Settings(nodes=2), "fuse", 5, "no reason")


@pytest.mark.skipif(REASON is not None, reason=f"no nodes here: {REASON}")
def test_a_replay_takes_what_its_exchanges_take(tmp_path: Path, capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    settings = Settings(nodes=2, bandwidth=100e6)
    assert replay(str(bundle(tmp_path)), settings, "fuse", 5, None) == 0
    said = capsys.readouterr().out
    measured = float(said.split("measured")[1].split()[0])
    # 11 ms of computing and 3 MiB over 100 Mbit/s, with headers.
    assert 240 < measured < 450, said
