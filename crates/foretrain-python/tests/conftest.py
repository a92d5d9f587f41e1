"""What tests share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def examples() -> Path:
    """The small examples of the repository."""
    return REPOSITORY / "examples"


@pytest.fixture(scope="session")
def job(examples: Path):
    """A recorded job of two ranks."""
    import foretrain

    return foretrain.load(examples / "ddp-tiny")


@pytest.fixture(scope="session")
def command():
    """Runs the `foretrain` command that the wheel installed; returns its exit code and output."""
    program = Path(sys.executable).with_name("foretrain")

    def run(*arguments: object) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(program), *(str(one) for one in arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run
