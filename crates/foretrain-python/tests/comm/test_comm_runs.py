"""Sweeps of the real library, in processes of this machine."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")


def start(out: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    command = [sys.executable, "-m", "foretrain.capture.comm", "--out", str(out), *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_all_tables_of_two_processes(tmp_path: Path):
    arguments = ("--nproc", "2", "--sizes", "4K,64K", "--budget", "6s", "--backend", "gloo")
    run = start(tmp_path, *arguments)
    _, said = run.communicate(timeout=240)
    assert run.returncode == 0, said
    found = rows(tmp_path / "comm.csv")
    assert {row["world"] for row in found} == {"2"} and {row["nodes"] for row in found} == {"1"}
    assert {"all_reduce", "all_gather", "broadcast", "sendrecv"} <= {row["op"] for row in found}
    for row in found:
        assert 0 < float(row["p10_us"]) <= float(row["time_us"]) <= float(row["p90_us"]), row
        assert float(row["barriered_us"]) > 0 and int(row["n"]) >= 3 and float(row["cpu_us"]) > 0
    # Sums need the library's own threads.
    assert any(float(row["library_cpu_us"]) > 0 for row in found)
    primitives = rows(tmp_path / "primitives.csv")
    assert {"aggregate", "copy", "encode half", "decode top-k"} <= {
        r["operation"] for r in primitives
    }
    assert all(float(row["time_us"]) > 0 for row in primitives)
    beside = rows(tmp_path / "interference.csv")
    assert beside and all(float(row["kernel_us"]) > 0 for row in beside)
    # What is there is not replaced.
    again = start(tmp_path, *arguments)
    _, said = again.communicate(timeout=120)
    assert again.returncode == 2 and "--overwrite" in said


def test_a_rank_that_dies_ends_the_sweep_and_keeps_its_rows(tmp_path: Path):
    run = start(
        tmp_path,
        "--nproc",
        "2",
        "--sizes",
        "1K..1M",
        "--budget",
        "300s",
        "--tables",
        "comm",
        "--quiet",
    )
    table = tmp_path / "comm.csv"
    until = time.monotonic() + 120
    while time.monotonic() < until and not (table.exists() and rows(table)):
        assert run.poll() is None
        time.sleep(0.2)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    killed = time.monotonic()
    _, said = run.communicate(timeout=60)
    assert time.monotonic() - killed < 30
    assert run.returncode == 1
    assert "rank 1 was ended by SIGKILL" in said or "cannot go on" in said
    assert rows(table)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no launcher has made this process a rank"),
        (("--nproc", "1", "--tables", "comm"), "one rank has nobody"),
        (("--nproc", "2", "--backend", "nccl"), "nccl"),
    ],
)
def test_what_cannot_be_measured_is_told(tmp_path: Path, arguments, words):
    import torch

    if "nccl" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has GPUs")
    run = start(tmp_path, *arguments)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 2 and words in said
    assert "Traceback" not in said
