"""Loops that do what most do not."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foretrain
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from foretrain.capture import capture
from toy import Toy

Read = Callable[..., dict[str, Any]]
SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 11


def test_a_step_that_only_began_is_none(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with capture(tmp_path / "bundle", model=toy.model, **SHORT) as recorder:
        for batch in toy.batches(STEPS - 1):
            toy.train(batch)
            recorder.step()
        toy.train(batch)
    assert read()["missing"] == ["profile: 2 of 3 steps"]
    packed = (tmp_path / "bundle" / "rank0.trace.json.gz").read_bytes()
    names = [event.get("name", "") for event in json.loads(gzip.decompress(packed))["traceEvents"]]
    assert sum(name.startswith("ProfilerStep#") for name in names) == 1
    assert "unfinished step" in names
    # One whole step is little, but it is all.
    assert len(foretrain.inspect(tmp_path / "bundle").ranks[0].steps) == 1


def test_what_a_restart_cut_is_not_counted(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with capture(tmp_path / "bundle", model=toy.model, **SHORT) as recorder:
        loader = iter(recorder.loader(toy.batches(60)))
        for step in range(14):
            for part in range(3):
                toy.train(next(loader))
                if step % 3 == 0 and part == 1:
                    recorder.restart_clock()
            recorder.step()
    # Steps 0, 3 and 6 fall into warm-up and timed ones.
    assert read()["steps"]["unprofiled"]["samples"] == [24, 24, 24, 24]
    assert read()["replica_batch"]["samples"] == 24


def test_iterators_and_lists_stay_what_they_are(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with capture(tmp_path / "bundle", model=toy.model, **SHORT) as recorder:
        batches = recorder.loader(batch for batch in toy.batches(STEPS))
        assert batches
        for _ in range(STEPS):
            toy.train(next(batches))
            recorder.step()
        with pytest.raises(StopIteration):
            next(batches)
        several = recorder.loader([1, 2])
        assert several[1] == 2 and len(several) == 2 and not recorder.loader([])
    assert read()["replica_batch"]["samples"] == 8 and read()["complete"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_records_nothing(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with capture(tmp_path / "bundle", model=toy.model, **SHORT) as recorder:
        recorder.step()
        child = os.fork()
        if child == 0:
            for _ in range(20):
                recorder.step()
            recorder.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert not list((tmp_path / "bundle").glob("rank*"))
        for _ in range(STEPS):
            toy.train(toy.batches(1)[0])
            recorder.step()
    assert read()["complete"]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    capture(tmp_path, warmup=numpy.int64(2), replica_batch=numpy.float32(4.0))
    with pytest.raises(ValueError, match="warmup is"):
        capture(tmp_path, warmup=numpy.float64(2))


@pytest.mark.parametrize("wrong", ["adam", 5, {"a": 1}, [3]])
def test_what_is_no_optimiser_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(TypeError, match=r"expected a torch\.optim\.Optimizer"):
        capture(tmp_path, optimizer=wrong)
