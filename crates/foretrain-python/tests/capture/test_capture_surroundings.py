"""What captures tell of machine and environment. These need no PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from foretrain.capture.bundle import _lines
from foretrain.capture.loader import samples_in
from foretrain.capture.machine import hashed_host, quota_cores
from foretrain.capture.notes import Notes, describe
from foretrain.capture.parallel import compact
from foretrain.capture.ranks import place
from foretrain.capture.topology import describe as describe_topology
from foretrain.capture.topology import parse_matrix
from foretrain.capture.variables import relevant_variables

MATRIX = """\
\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\t0-47\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A
NIC0\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe
"""


def test_links_are_read_from_the_matrix() -> None:
    assert parse_matrix(MATRIX.replace("\x1b[4mGPU0", "\t\x1b[4mGPU0")) == {
        "GPU0": {"GPU1": "NV18", "NIC0": "PIX"},
        "GPU1": {"GPU0": "NV18", "NIC0": "SYS"},
        "NIC0": {"GPU0": "PIX", "GPU1": "SYS"},
    }


@pytest.mark.parametrize("text", ["", "No devices were found\n", "GPU0 GPU1\nGPU0 X\n", "\0\n" * 9])
def test_what_is_no_matrix_gives_no_links(text: str) -> None:
    assert parse_matrix(text) == {}


def test_a_tool_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("foretrain.capture.topology._SECONDS", 0.2)
    notes = Notes()
    assert describe_topology(notes) is None
    assert "TimeoutExpired" in notes.as_list()[0]["message"]
    tool.write_text(f"#!/bin/sh\ncat <<'E'\n{MATRIX}E\n")
    told = describe_topology(Notes())
    assert told is not None and told["links"]["GPU0"]["GPU1"] == "NV18" and "Legend" in told["raw"]


def test_secrets_and_places_are_kept_back() -> None:
    shown = relevant_variables(
        {
            "NCCL_ALGO": "Ring",
            "NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1",
            "NCCL_TOPO_FILE": "/home/somebody/topo.xml",
            "NCCL_COMM_ID": "10.1.2.3:1234",
            "NCCL_SOCKET_FAMILY": "fe80:0:0:1::2",
            "NCCL_HOSTID": "10.1.2.3",
            "UCX_AUTH_TOKEN": "hunter2",
            "NCCL_SOMETHING": "AKIAIOSFODNN7EXAMPLEKEY12345",
            "PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.8,expandable_segments:True",
            "OMP_NUM_THREADS": "4",
            "HOME": "/home/somebody",
            "AWS_SECRET_ACCESS_KEY": "x",
            "WANDB_API_KEY": "x",
        }
    )
    assert shown == {
        "NCCL_ALGO": "Ring",
        "NCCL_HOSTID": "(an address, withheld)",
        "NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1",
        "NCCL_SOCKET_FAMILY": "(an address, withheld)",
        "NCCL_SOMETHING": "(a long word, withheld)",
        "NCCL_TOPO_FILE": "(a path, withheld)",
        "OMP_NUM_THREADS": "4",
        "PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.8,expandable_segments:True",
    }


def test_hosts_are_hashed_by_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node17")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    first = hashed_host()
    assert first == hashed_host() and len(first) == 12 and "node17" not in first
    monkeypatch.setenv("SLURM_JOB_ID", "2")
    assert hashed_host() != first


def test_the_tightest_quota_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    own = "0::/a/b\n"
    assert quota_cores(tmp_path, own) is None
    (inner / "cpu.max").write_text("max 100000\n")
    assert quota_cores(tmp_path, own) is None
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    assert quota_cores(tmp_path, own) == 1.5
    (inner / "cpu.max").write_text("50000 100000\n")
    assert quota_cores(tmp_path, own) == 0.5
    # In a container the path is the host's, and the root is the container's own group.
    (tmp_path / "cpu.max").write_text("25000 100000\n")
    assert quota_cores(tmp_path, "0::/kubepods/pod7\n") == 0.25
    assert quota_cores(tmp_path, "0::/../..\n") == 0.25
    assert quota_cores(tmp_path / "nowhere", "nonsense\n") is None


def test_the_older_groups_quota(tmp_path: Path) -> None:
    place = tmp_path / "cpu,cpuacct" / "docker"
    place.mkdir(parents=True)
    (place / "cpu.cfs_period_us").write_text("100000\n")
    (place / "cpu.cfs_quota_us").write_text("-1\n")
    own = "4:memory:/docker\n3:cpu,cpuacct:/docker\n"
    assert quota_cores(tmp_path, own) is None
    (place / "cpu.cfs_quota_us").write_text("75000\n")
    assert quota_cores(tmp_path, own) == 0.75


@pytest.mark.parametrize(
    ("variables", "rank", "size", "source"),
    [
        ({}, 0, 1, "default"),
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8, "RANK"),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, 2, 4, "SLURM_PROCID"),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"}, 5, 6, "OMPI_COMM_WORLD_RANK"),
        ({"RANK": "3"}, 3, 4, "RANK"),
        ({"RANK": "-1"}, 0, 1, "default"),
        ({"RANK": "\u0664"}, 0, 1, "default"),
    ],
)
def test_ranks_come_from_launchers(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], rank: int, size: int, source: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = place()
    assert (found.rank, found.world_size, found.source) == (rank, size, source)


def test_ranges_are_short() -> None:
    assert compact([]) == ""
    assert compact([0]) == "0"
    assert compact([0, 1, 2, 3, 8, 10, 11]) == "0-3,8,10-11"


def test_samples_are_the_first_dimension() -> None:
    class Tensor:
        def __init__(self, *shape: int) -> None:
            self.shape = shape

    class Output:
        def __init__(self) -> None:
            self.pixels = Tensor(6, 3)

    assert samples_in(Tensor(4, 2)) == 4
    assert samples_in([Tensor(), {"x": "text", "y": (Tensor(5, 1), Tensor(9))}]) == 5
    assert samples_in(Output()) == 6
    endless: list[object] = []
    endless.append(endless)
    for nothing in (None, 3, "text", [], {}, Tensor(), Tensor("many"), endless):  # type: ignore
        assert samples_in(nothing) is None


def test_errors_fit_a_line_and_name_no_paths() -> None:
    assert describe(OSError(2, "No such file or directory", "/home/me")) == (
        "FileNotFoundError: No such file or directory"
    )
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(KeyError()) == "KeyError"
    assert len(describe(ValueError("x" * 9999))) < 330


def test_documents_are_json() -> None:
    import json

    document = {"a": {"b": {"c": [1, 2], "d": {}}, "e": []}, "f": [{"g": None}, {"h": "\u00e9"}]}
    assert json.loads(_lines(document)) == document
    with pytest.raises(ValueError, match="Out of range|not JSON"):
        _lines({"a": [float("nan")]})


def test_importing_needs_no_torch_and_using_says_so(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "sys.modules['torch'] = None\n"
        "from foretrain.capture import capture\n"
        "try: capture('bundle')\n"
        "except ImportError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, *[path for path in sys.path if path]]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "needs PyTorch" in ran.stdout and ran.stderr == ""
    assert list(tmp_path.iterdir()) == []
