"""Captures of several processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import ranks

Read = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="this PyTorch has no gloo",
)


def both(read: Read) -> list[dict[str, Any]]:
    written = [read(rank) for rank in (0, 1)]
    for rank, one in enumerate(written):
        assert (one["rank"], one["world_size"], one["rank_source"]) == (
            rank,
            2,
            "torch.distributed",
        )
    return written


def test_ddp(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.ddp, tmp_path / "bundle")
    for written in both(read):
        assert written["complete"] and written["notes"] == []
        parallel = written["parallel"]
        assert parallel["kind"] == "ddp"
        [group] = parallel["process_groups"]
        assert (group["ranks"], group["backend"], group["size"]) == ("0-1", "gloo", 2)
        layout = parallel["ddp"]
        assert layout["bucket_cap_bytes"] == 4096 and layout["rebuilt"]
        assert not layout["bucket_cap_is_default"]
        assert layout["broadcast_buffers"] and not layout["gradient_as_bucket_view"]
        parameters = written["model"]["parameters"]
        buckets = layout["buckets"]
        assert len(buckets) > 2
        for bucket in buckets:
            assert bucket["bytes"] == sum(parameters[i]["bytes"] for i in bucket["parameters"])
        indices = [i for bucket in buckets for i in bucket["parameters"]]
        assert sorted(indices) == list(range(len(parameters)))
        # Buckets are filled in the order in which gradients become ready.
        ready = written["gradients"]["ready_ns"]
        ends = [max(ready[i] for i in bucket["parameters"]) for bucket in buckets]
        assert ends == sorted(ends)
    one, other = (written["environment"]["machine"]["host"] for written in both(read))
    assert one == other


def test_ddp_settings(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.ddp_views, tmp_path / "bundle")
    for written in both(read):
        layout = written["parallel"]["ddp"]
        assert layout["bucket_cap_is_default"]
        assert layout["gradient_as_bucket_view"] and layout["static_graph"]
        assert not layout["broadcast_buffers"]
        assert layout["communication_hooks"] == ["fp16_compress_hook"]
        [bucket] = layout["buckets"]
        assert sorted(bucket["parameters"]) == [1, 2, 3, 4, 5]
        parameters = written["model"]["parameters"]
        assert bucket["bytes"] == sum(p["bytes"] for p in parameters if p["requires_grad"])


def test_ddp_without_synchronisation(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.ddp_accumulating, tmp_path / "bundle")
    for written in both(read):
        told = written["gradients"]
        assert (told["forwards_per_step"], told["synchronised_per_step"]) == (3, 1)


def test_the_model_inside_ddp(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.ddp_inside, tmp_path / "bundle")
    for written in both(read):
        [bucket] = written["parallel"]["ddp"]["buckets"]
        assert sorted(bucket["parameters"]) == [0, 1, 2, 3, 4, 5]
        assert written["model"]["parameters"][0]["name"] == "0.weight"


def test_several_processes_without_ddp(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.alone, tmp_path / "bundle")
    for written in both(read):
        assert written["parallel"]["kind"] == "none"
        [note] = written["notes"]
        assert "pass the wrapped one" in note["message"]


def test_hugging_face_under_ddp(tmp_path: Path, read: Read) -> None:
    pytest.importorskip("transformers", reason="Transformers is not installed")
    pytest.importorskip("accelerate", reason="Accelerate is not installed")
    ranks.spawn(ranks.hugging_face, tmp_path / "bundle")
    for written in both(read):
        assert written["complete"] and written["notes"] == []
        [bucket] = written["parallel"]["ddp"]["buckets"]
        assert sorted(bucket["parameters"]) == [0, 1]


def test_fsdp2(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.fsdp2, tmp_path / "bundle")
    for written in both(read):
        assert written["complete"] and written["notes"] == []
        parallel = written["parallel"]
        assert parallel["kind"] == "fsdp2"
        parameters = written["model"]["parameters"]
        assert parameters[0]["shape"] == [32, 16]
        assert parameters[0]["local_bytes"] * 2 == parameters[0]["bytes"]
        units = {unit["module"]: unit for unit in parallel["units"]}
        assert units["0"]["parameters"] == [0, 1] and units["0"]["ranks"] == 2
        assert units[""]["parameters"] == [2, 3, 4, 5]
        assert units["0"]["bytes"] == parameters[0]["bytes"] + parameters[1]["bytes"]
        assert units["0"]["reshard_after_forward"] == "whole"
        assert all(time is not None for time in written["gradients"]["ready_ns"])
        state = written["optimizers"][0]["state_bytes"]
        assert state["exp_avg"] == sum(p["local_bytes"] for p in parameters)


def test_fsdp1(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.fsdp1, tmp_path / "bundle")
    for written in both(read):
        assert written["complete"] and written["notes"] == []
        parallel = written["parallel"]
        assert parallel["kind"] == "fsdp1"
        units = {unit["module"]: unit for unit in parallel["units"]}
        assert units["3"]["parameter_names"] == ["weight", "bias"]
        assert units["3"]["parameter_shapes"] == [[4, 32], [4]]
        assert units["3"]["bytes"] == (4 * 32 + 4) * 4
        assert units["3"]["parameters"] == [4, 5]
        assert units[""]["parameters"] == [0, 1, 2, 3]
        assert units["3"]["sharding"] == "FULL_SHARD" and units["3"]["ranks"] == 2
        assert units["3"]["mixed_precision"] == {"reduce_dtype": "float64"}
        parameters = written["model"]["parameters"]
        assert [p["shape"] for p in parameters] == [[32, 16], [32], [32], [32], [4, 32], [4]]
        assert sum(p["bytes"] for p in parameters) == sum(u["bytes"] for u in units.values())
        told = written["gradients"]
        # Gradients of a unit come together, those of the last unit first.
        assert len(set(told["ready_ns"][:4])) == 1 and told["ready_ns"][4] < told["ready_ns"][0]
        assert told["backward_end_ns"] == told["ready_ns"][0]
        assert "synchronised_per_step" not in told
    # Each rank holds a half.
    held = [sum(p["local_bytes"] for p in w["model"]["parameters"]) for w in both(read)]
    assert sum(held) == sum(p["bytes"] for p in parameters)


def test_fsdp1_with_flat_parameters(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.fsdp1_flat, tmp_path / "bundle")
    for written in both(read):
        assert written["complete"] and written["notes"] == []
        front, back = written["model"]["parameters"]
        assert (front["bytes"], back["bytes"]) == ((32 * 16 + 3 * 32) * 4, (4 * 32 + 4) * 4)
        assert front["local_bytes"] * 2 == front["bytes"]
        front_ready, back_ready = written["gradients"]["ready_ns"]
        assert back_ready < front_ready


def test_a_rank_that_fails_does_not_stop_the_others(tmp_path: Path, read: Read) -> None:
    ranks.spawn(ranks.one_fails, tmp_path / "bundle")
    good, bad = both(read)
    assert good["complete"] and not bad["complete"]
    assert "no profiler today" in bad["notes"][0]["message"]
    assert len(bad["steps"]["unprofiled"]["wall_ns"]) == 4
