"""Whatever fails in a capture, the training goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from foretrain.capture import capture
from toy import Toy

Read = Callable[..., dict[str, Any]]
SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 14


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("injected")


def full(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device", "/home/somebody/secret")


def train(path: Path, toy: Toy, **options: Any) -> int:
    """Trains all steps, whatever happens to the capture; returns how many there were."""
    done = 0
    with capture(
        path / "bundle", model=toy.model, optimizer=toy.optimizer, **SHORT | options
    ) as recorder:
        for batch in recorder.loader(toy.batches(STEPS)):
            toy.train(batch)
            recorder.step()
            done += 1
    assert recorder.idle
    return done


@pytest.mark.parametrize(
    ("target", "about", "timed"),
    [
        ("foretrain.capture.stages.Stage.step", "warmup", 0),
        ("foretrain.capture.gradients.GradientStage.enter", "gradients", 4),
        ("foretrain.capture.gradients.GradientStage._ready_hook", "gradients", 4),
        ("foretrain.capture.gradients.GradientStage._forward_starts", "gradients", 4),
        ("foretrain.capture.gradients.GradientStage._optimizer_ends", "gradients", 4),
        ("foretrain.capture.gradients.GradientStage.leave", "gradients", 4),
        ("torch.profiler.profile.__init__", "profile", 4),
        ("torch.profiler.profile.start", "profile", 4),
        ("torch.profiler.profile.step", "profile", 4),
        ("torch.profiler.profile.export_chrome_trace", "profile", 4),
        ("torch.profiler.ExecutionTraceObserver.register_callback", "execution", 4),
        ("torch.profiler.ExecutionTraceObserver.unregister_callback", "execution", 4),
    ],
)
def test_a_stage_that_fails_ends_the_capture(
    tmp_path: Path,
    read: Read,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    about: str,
    timed: int,
) -> None:
    toy = Toy()
    if "unregister" in target:
        # It does what it should first: an observer that stays would meet later tests.
        unregister = torch.profiler.ExecutionTraceObserver.unregister_callback
        monkeypatch.setattr(target, lambda self: fail(unregister(self)))
    else:
        monkeypatch.setattr(target, fail)
    with pytest.warns(RuntimeWarning, match=f"foretrain capture, {about}: .*injected") as told:
        assert train(tmp_path, toy, execution_trace=True) == STEPS
    assert len([one for one in told if "foretrain" in str(one.message)]) == 1
    written = read()
    assert any(note["about"] == about for note in written["notes"])
    assert not written["complete"] or about == "execution"
    assert len(written["steps"].get("unprofiled", {}).get("wall_ns", [])) == timed
    monkeypatch.undo()
    # A recorder that failed leaves nothing attached, and files only if they are whole.
    if "leave" not in target:
        assert toy.hooks() == 0
    assert not [path for path in (tmp_path / "bundle").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "target",
    [
        "foretrain.capture.facts.describe_model",
        "foretrain.capture.facts.describe_optimizers",
        "foretrain.capture.facts.memory",
        "foretrain.capture.environment.describe_machine",
        "foretrain.capture.environment.devices",
        "foretrain.capture.parallel.process_groups",
    ],
)
def test_facts_that_cannot_be_had_are_noted(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(target, fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(tmp_path, Toy()) == STEPS
    written = read()
    assert written["complete"]
    assert [note["message"] for note in written["notes"]] == ["RuntimeError: injected"]


def test_a_full_disk_is_told_without_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(RuntimeWarning, match="No space left on device") as told:
        assert train(tmp_path, Toy()) == STEPS
    assert "secret" not in str(told[0].message)
    assert list((tmp_path / "bundle").iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("a file")
    with pytest.warns(RuntimeWarning, match="nothing is recorded: FileExistsError"):
        assert train(tmp_path, Toy()) == STEPS
    assert (tmp_path / "bundle").read_text() == "a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir(mode=0o500)
    with pytest.warns(RuntimeWarning, match="nothing is recorded: PermissionError"):
        assert train(tmp_path, Toy()) == STEPS


def test_warnings_as_errors_do_not_reach_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretrain.capture.gradients.GradientStage.enter", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(tmp_path, Toy()) == STEPS


def test_a_model_without_parameters(tmp_path: Path, read: Read) -> None:
    with capture(tmp_path / "bundle", model=torch.nn.ReLU(), **SHORT) as recorder:
        for _ in range(STEPS):
            recorder.step()
    written = read()
    assert written["complete"]
    assert written["model"]["parameters"] == [] and written["gradients"]["ready_ns"] == []


def test_an_optimiser_that_is_none(tmp_path: Path, read: Read) -> None:
    toy = Toy()
    with pytest.raises(TypeError, match="optimizer is a object"):
        capture(tmp_path / "bundle", model=toy.model, optimizer=object(), **SHORT)
    # One of somebody else's, with the groups of PyTorch's and nothing more.
    foreign = SimpleNamespace(param_groups=[{"params": list(toy.model.parameters())}])
    with capture(tmp_path / "bundle", model=toy.model, optimizer=foreign, **SHORT) as recorder:
        for batch in toy.batches(STEPS):
            toy.train(batch)
            recorder.step()
    written = read()
    assert written["complete"]
    assert "takes no hooks" in written["notes"][0]["message"]


def test_somebody_else_s_profiler(tmp_path: Path, read: Read) -> None:
    """Kineto allows one profiler at a time: the user's own comes first."""
    toy = Toy()
    with torch.profiler.profile() as profiler:
        with pytest.warns(RuntimeWarning, match="another profiler is running"):
            assert train(tmp_path, toy) == STEPS
    assert profiler.key_averages()
    assert len(read()["steps"]["unprofiled"]["wall_ns"]) == 4


def test_somebody_else_s_observer(tmp_path: Path, read: Read) -> None:
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "theirs.json"))
    try:
        with pytest.warns(RuntimeWarning, match="is another observer registered"):
            assert train(tmp_path, Toy(), execution_trace=True) == STEPS
    finally:
        observer.unregister_callback()
    written = read()
    assert "execution" not in written["files"] and "trace" in written["files"]


def test_a_program_that_ends_early_still_writes(tmp_path: Path) -> None:
    """A decorated function knows no end; the interpreter's counts."""
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from foretrain.capture import capture\n"
        "@capture.steps(sys.argv[1], warmup=1, timed=50)\n"
        "def step(): pass\n"
        "for _ in range(7): step()\n"
        "if sys.argv[1].endswith('fork'):\n"
        "    import os\n"
        "    if os.fork() == 0: sys.exit(0)\n"
        "    os.wait()\n"
        "    assert not os.path.exists(sys.argv[1] + '/rank0.capture.json')\n"
        "raise SystemExit(3)\n"
    )
    for name in ("plain", "fork"):
        paths = [path for path in sys.path if path]
        command = [sys.executable, "-c", script, str(tmp_path / name), *paths]
        assert subprocess.run(command, timeout=120).returncode == 3
        written = json.loads((tmp_path / name / "rank0.capture.json").read_text())
        assert len(written["steps"]["unprofiled"]["wall_ns"]) == 6
