"""Captures of loops in one process."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from foretrain.capture import CaptureError, capture
from toy import Toy

Read = Callable[..., dict[str, Any]]
SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 11


def record(toy: Toy, path: Path, steps: int, **options: Any) -> None:
    with capture(
        path / "bundle", model=toy.model, optimizer=toy.optimizer, **SHORT | options
    ) as recorder:
        for batch in recorder.loader(toy.batches(steps)):
            toy.train(batch)
            recorder.step()


def test_all_stages_are_recorded(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    record(toy, tmp_path, STEPS + 3, execution_trace=True)
    written = read()
    assert written["foretrain_capture"] == 1
    assert (written["rank"], written["world_size"]) == (0, 1)
    assert written["complete"] and written["missing"] == [] and written["notes"] == []
    counts = {name: len(steps["wall_ns"]) for name, steps in written["steps"].items()}
    assert counts == {"warmup": 2, "unprofiled": 4, "hooked": 2, "profiled": 2, "execution": 1}
    timed = written["steps"]["unprofiled"]
    assert all(time > 0 for time in timed["wall_ns"])
    assert [len(timed[name]) for name in ("input_wait_ns", "recorder_ns", "samples")] == [4, 4, 4]
    assert all(0 < w < t for w, t in zip(timed["input_wait_ns"], timed["wall_ns"], strict=True))
    assert written["replica_batch"] == {"samples": 8, "source": "batches"}
    assert toy.hooks() == 0


def test_the_model_is_described(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    toy.model[0].bias.requires_grad = False
    record(toy, tmp_path, STEPS)
    written = read()
    parameters = written["model"]["parameters"]
    assert [p["name"] for p in parameters] == [n for n, _ in toy.model.named_parameters()]
    assert parameters[0]["shape"] == [32, 16] and parameters[0]["bytes"] == 32 * 16 * 4
    assert [p["requires_grad"] for p in parameters] == [True, False, True, True, True, True]
    # Mean and variance of 32 channels, and the number of batches.
    assert written["model"]["buffers"]["bytes"] == 2 * 32 * 4 + 8
    state = written["optimizers"][0]["state_bytes"]
    trained = sum(p["bytes"] for p in parameters if p["requires_grad"])
    assert written["optimizers"][0]["class"] == "Adam"
    assert state["exp_avg"] == state["exp_avg_sq"] == trained


def test_gradients_become_ready_from_the_last_layer_on(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    record(toy, tmp_path, STEPS)
    told = read()["gradients"]
    assert told["clock"] == "host" and told["forwards_per_step"] == 1
    ready = told["ready_ns"]
    assert len(ready) == 6 and max(ready[4:]) < min(ready[:2])
    moments = ("forward_start", "forward_end", "backward_end", "optimizer_start", "optimizer_end")
    times = [told[f"{moment}_ns"] for moment in (*moments, "step_end")]
    assert times == sorted(times)
    assert told["forward_end_ns"] < min(ready) and max(ready) == told["backward_end_ns"]


def test_unused_parameters_have_no_time(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    toy.model.register_parameter("unused", torch.nn.Parameter(torch.zeros(3)))
    record(toy, tmp_path, STEPS)
    written = read()
    index = [p["name"] for p in written["model"]["parameters"]].index("unused")
    times = written["gradients"]["ready_ns"]
    assert [time is None for time in times] == [i == index for i in range(7)]


def test_shared_parameters_are_told_once(tmp_path: Path, read: Read) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(16, 16, bias=False)
            self.second = torch.nn.Linear(16, 16, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    toy = Toy(wrap=lambda _: Tied())
    record(toy, tmp_path, STEPS)
    [parameter] = read()["model"]["parameters"]
    assert parameter["name"] == "first.weight" and parameter["also"] == ["second.weight"]


def test_accumulation_is_counted(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with capture(
        tmp_path / "bundle", model=toy.model, optimizer=toy.optimizer, **SHORT
    ) as recorder:
        for index, batch in enumerate(recorder.loader(toy.batches(3 * STEPS))):
            toy.model(batch).square().mean().backward()
            if index % 3 == 2:
                toy.optimizer.step()
                toy.optimizer.zero_grad()
                recorder.step()
    written = read()
    assert written["gradients"]["forwards_per_step"] == 3
    assert written["replica_batch"]["samples"] == 24
    assert len(written["steps"]["unprofiled"]["wall_ns"]) == 4


def test_the_trace_holds_the_profiled_steps(tmp_path: Path, read: Read) -> None:
    record(Toy(), tmp_path, STEPS, execution_trace=True)
    files = read()["files"]
    assert files == {"trace": "rank0.trace.json.gz"}
    trace = json.loads(gzip.decompress((tmp_path / "bundle" / files["trace"]).read_bytes()))
    steps = {
        e["name"] for e in trace["traceEvents"] if e.get("name", "").startswith("ProfilerStep")
    }
    assert len(steps) == 2
    assert trace["traceName"] == "rank0.trace.json.gz"
    assert str(tmp_path) not in json.dumps(trace)
    assert trace["host_name"] == read()["environment"]["machine"]["host"]
    assert sorted(p.name for p in (tmp_path / "bundle").iterdir()) == [
        "rank0.capture.json",
        "rank0.trace.json.gz",
    ]


@pytest.mark.parametrize("hostname", ["plain", "omit"])
def test_machines_are_named_as_asked(tmp_path: Path, read: Read, hostname: str) -> None:
    import socket

    record(Toy(), tmp_path, STEPS, hostname=hostname)
    packed = (tmp_path / "bundle" / "rank0.trace.json.gz").read_bytes()
    name = json.loads(gzip.decompress(packed))["host_name"]
    told = read()["environment"]["machine"].get("host")
    plain = socket.gethostname()
    assert (name, told) == ((plain, plain) if hostname == "plain" else ("", None))


def test_the_execution_trace_is_whole(tmp_path: Path, read: Read) -> None:
    record(Toy(), tmp_path, STEPS + 1, execution_trace=True)
    packed = tmp_path / "bundle" / read()["files"]["execution"]
    assert len(json.loads(gzip.decompress(packed.read_bytes()))["nodes"]) > 20


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_loops_that_are_too_short_give_what_there_was(
    tmp_path: Path, read: Read, steps: int
) -> None:
    toy = Toy()
    record(toy, tmp_path, steps)
    written = read()
    assert written["complete"] == (steps >= STEPS)
    timed = written["steps"]["unprofiled"].get("wall_ns", [])
    assert len(timed) == min(max(steps - 2, 0), 4)
    # A trace is written if it holds one whole step.
    assert ("trace" in written["files"]) == (steps > 9)
    assert (tmp_path / "bundle" / "rank0.trace.json.gz").exists() == (steps > 9)
    if steps == 7:
        assert written["missing"] == ["gradients: 1 of 2 steps", "profile: 0 of 3 steps"]
    assert toy.hooks() == 0
    # The profiler must be free for others.
    with torch.profiler.profile():
        torch.ones(1) + 1


@pytest.mark.parametrize("steps", [0, 1, 4, 7, 9, 10])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_exceptions_of_the_loop_pass_through(
    tmp_path: Path, read: Read, steps: int, kind: type[BaseException]
) -> None:
    toy = Toy()
    with (
        pytest.raises(kind, match="stop"),
        capture(tmp_path / "bundle", model=toy.model, **SHORT) as recorder,
    ):
        for batch in recorder.loader(toy.batches(steps)):
            toy.train(batch)
            recorder.step()
        raise kind("stop")
    written = read()
    assert f"the training loop ended by {kind.__name__}" in written["notes"][0]["message"]
    assert not written["complete"]
    assert toy.hooks() == 0


def test_a_function_can_be_a_step(tmp_path: Path, read: Read) -> None:
    toy = Toy()

    @capture.steps(tmp_path / "bundle", model=toy.model, optimizer=toy.optimizer, **SHORT)
    def step(batch: Any) -> float:
        """One step."""
        return toy.train(batch)

    assert (step.__name__, step.__doc__) == ("step", "One step.")
    assert not (tmp_path / "bundle").exists()
    losses = [step(batch) for batch in toy.batches(STEPS + 2)]
    assert losses[-1] < losses[0]
    assert step.recorder.idle and read()["complete"]


def test_a_function_that_fails_ends_its_capture(tmp_path: Path, read: Read) -> None:
    @capture.steps(tmp_path / "bundle", **SHORT)
    def step(number: int) -> None:
        if number == 4:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for number in range(6):
            step(number)
    assert len(read()["steps"]["unprofiled"]["wall_ns"]) == 2


def test_a_capture_without_a_model_times_steps(tmp_path: Path, read: Read) -> None:
    with capture(tmp_path / "bundle", replica_batch=64, **SHORT) as recorder:
        for _ in range(STEPS):
            recorder.step()
    written = read()
    assert "hooked" not in written["steps"] and written["replica_batch"]["source"] == "given"
    assert written["notes"][0]["about"] == "gradients"


def test_captures_are_not_overwritten_unasked(tmp_path: Path, read: Read) -> None:
    record(Toy(), tmp_path, STEPS)
    before = (tmp_path / "bundle" / "rank0.capture.json").read_bytes()
    with pytest.raises(CaptureError, match="rank 0 has been captured there before.*overwrite=True"):
        record(Toy(), tmp_path, STEPS)
    assert (tmp_path / "bundle" / "rank0.capture.json").read_bytes() == before
    # The trace of the old capture must not stand beside the new one.
    record(Toy(), tmp_path, 3, overwrite=True)
    assert not read()["complete"]
    assert [p.name for p in (tmp_path / "bundle").iterdir()] == ["rank0.capture.json"]


def test_two_captures_at_once_are_refused(tmp_path: Path) -> None:
    with capture(tmp_path / "one", **SHORT):
        with pytest.raises(CaptureError, match="is running in this process"):
            capture(tmp_path / "two", **SHORT).start()
    assert not (tmp_path / "two").exists()
    with capture(tmp_path / "two", **SHORT):
        pass


def test_a_recorder_is_used_once(tmp_path: Path) -> None:
    recorder = capture(tmp_path / "bundle", **SHORT)
    with recorder:
        pass
    with pytest.raises(CaptureError, match="has been used"):
        recorder.start()


def test_other_work_between_steps_is_left_out(tmp_path: Path, read: Read) -> None:
    now = 0

    def clock() -> int:
        return now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter_ns", clock)
        with capture(tmp_path / "bundle", warmup=0, timed=3, gradients=0, profiled=0) as recorder:
            for pause in (0, 1_000_000, 0):
                now += pause
                recorder.restart_clock()
                now += 1000
                recorder.step()
    assert read()["steps"]["unprofiled"]["wall_ns"] == [1000, 1000, 1000]


def test_loaders_keep_what_they_are(tmp_path: Path) -> None:
    class Loader(list):  # type: ignore[type-arg]
        batch_size = 7

        def set_epoch(self, epoch: int) -> int:
            return epoch + 1

    with capture(tmp_path / "bundle", **SHORT) as recorder:
        loader = recorder.loader(Loader([1, 2, 3]))
        assert len(loader) == 3 and loader.batch_size == 7 and loader.set_epoch(4) == 5
        assert list(loader) == [1, 2, 3] and list(loader) == [1, 2, 3]
        with pytest.raises(AttributeError):
            _ = loader.nonsense
    assert list(loader) == [1, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "kind", "says"),
    [
        ({"warmup": -1}, ValueError, "warmup is -1"),
        ({"timed": 2.5}, ValueError, "timed is 2.5"),
        ({"profiled": True}, ValueError, "profiled is True"),
        ({"replica_batch": 0}, ValueError, "replica_batch is 0"),
        ({"replica_batch": float("nan")}, ValueError, "replica_batch is nan"),
        ({"replica_batch": "many"}, TypeError, "expected a number of samples"),
        ({"hostname": "mine"}, ValueError, "expected one of hash, plain, omit"),
        ({"model": "resnet"}, TypeError, "expected a torch.nn.Module"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, wrong: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        capture(tmp_path / "bundle", **wrong)
    assert not (tmp_path / "bundle").exists()
