"""Type stubs are true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "stubs.py"


def test_stubs_are_what_the_options_are() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_type_checker_follows_them(tmp_path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    good = """
import foretrain
job = foretrain.load("traces", ranks="0-7")
answer = foretrain.predict(job, on="dgx-a100", gpus=[8, 64], explain=True)
step: int = answer.sizes[0].step_time.value_ns
foretrain.fleet.utilisation.predict("gpt-2", with_="p.json", batch=8)
"""
    bad = 'import foretrain\nforetrain.predict("traces", on="dgx-a100", gpu=8)\n'
    for text, code in ((good, 0), (bad, 1)):
        file = tmp_path / "program.py"
        file.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout
