"""The command that the wheel installs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import foretrain
import pytest


def test_it_is_the_command(command, examples) -> None:
    code, text, said = command("inspect", examples / "ddp-tiny")
    assert code == 0 and not said and text.startswith("What is in 2 traces")
    code, text, _ = command("--version")
    assert code == 0 and text.strip() == f"foretrain {foretrain.__version__}"
    code, _, said = command("predict", "nowhere", "--on", "dgx-a100", "--gpus", 2)
    assert code == 2 and said.startswith("error:")
    code, _, said = command("predicted")
    assert code == 2 and "predict" in said


def test_it_is_the_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "foretrain", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"foretrain {foretrain.__version__}"


def test_it_starts_its_second_process(command, tmp_path) -> None:
    file = tmp_path / "primitives.toml"
    code, _, said = command(
        "calibrate", "primitives", "-o", file, "--sizes", "1K,64K,1M", "--budget", "1s"
    )
    assert code == 0, said
    assert "send" in file.read_text()
    answer = foretrain.calibrate.primitives(sizes=["1K", "64K", "1M"], budget="1s")
    assert answer.holds and "send" in str(answer)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_an_interrupt_ends_it() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "foretrain", "calibrate", "primitives", "--budget", "60s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1.0)
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=10) != 0
