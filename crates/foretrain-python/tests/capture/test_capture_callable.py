"""`foretrain.capture` is a module and what is called."""

from __future__ import annotations

import foretrain
import foretrain.capture as module
import pytest


def test_the_module_is_called(tmp_path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    recorder = foretrain.capture(tmp_path / "bundle", warmup=1, timed=2, profiled=0)
    assert isinstance(recorder, module.Recorder)
    with recorder:
        for _ in range(3):
            recorder.step()
    assert (tmp_path / "bundle" / "rank0.capture.json").is_file()
    assert foretrain.capture is module and module.steps == module.capture.steps
