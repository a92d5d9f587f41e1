"""What the tests of captures share."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("foretrain") is None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Reads a rank's capture file from the bundle in the test's directory."""

    def read_capture(rank: int = 0, bundle: str = "bundle") -> dict[str, Any]:
        return json.loads((tmp_path / bundle / f"rank{rank}.capture.json").read_text())

    return read_capture


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests must not take the rank of a job that they happen to run in."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
