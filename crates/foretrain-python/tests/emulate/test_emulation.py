"""Emulated nodes: links, processes, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from foretrain.capture.emulate import Emulation, EmulationError, Settings, why_not
from foretrain.capture.emulate.processors import Groups, cores_of, remove_stale

REASON = why_not()
needs_nodes = pytest.mark.skipif(REASON is not None, reason=f"no nodes here: {REASON}")

#: Node 1 sends megabytes to node 0, which writes how long that took.
TRANSFER = """
import os, socket, sys, time
size, out = int(sys.argv[1]), sys.argv[2]
address = (os.environ["MASTER_ADDR"], 7000)
if os.environ["RANK"] == "0":
    server = socket.create_server(address)
    other, _ = server.accept()
    left, start = size, time.perf_counter()
    while left:
        left -= len(other.recv(min(left, 1 << 20)))
    open(out, "w").write(str(time.perf_counter() - start))
else:
    for _ in range(200):
        try:
            other = socket.create_connection(address, 5)
            break
        except OSError:
            time.sleep(0.05)
    other.sendall(bytes(size))
    other.recv(1)
"""


def seconds(emulation: Emulation, tmp_path: Path, size: int) -> float:
    out = tmp_path / "seconds"
    outcome = emulation.run([sys.executable, "-c", TRANSFER, str(size), str(out)], timeout=60)
    assert outcome.code == 0, outcome.why
    return float(out.read_text())


@needs_nodes
def test_what_a_job_leaves_is_ended(tmp_path: Path):
    leave = (
        "import os, subprocess, sys; "
        "left = subprocess.Popen(['sleep', '300'], start_new_session=True); "
        "open(sys.argv[1] + os.environ['RANK'], 'w').write(str(left.pid))"
    )
    with Emulation(Settings(nodes=2)) as emulation:
        outcome = emulation.run([sys.executable, "-c", leave, str(tmp_path / "pid")], timeout=60)
        assert outcome.code == 0, outcome.why
        for rank in range(2):
            stat = Path("/proc", (tmp_path / f"pid{rank}").read_text(), "stat")
            until = time.monotonic() + 10.0
            while _is_alive(stat) and time.monotonic() < until:
                time.sleep(0.02)
            assert not _is_alive(stat)


def _is_alive(stat: Path) -> bool:
    try:
        # Nobody may have collected it yet.
        return ") Z " not in stat.read_text()
    except OSError:
        return False


@needs_nodes
def test_links_send_at_their_rate(tmp_path: Path):
    size = 2_000_000
    with Emulation(Settings(nodes=2, bandwidth=40e6)) as emulation:
        slow = seconds(emulation, tmp_path, size)
        # 0.4 s and headers of 5 %; a little credit at the start.
        assert 0.37 < slow < 0.8
        emulation.limit(400e6)
        assert seconds(emulation, tmp_path, size) < slow / 2
        emulation.limit(None)
        assert seconds(emulation, tmp_path, size) < slow / 2


@needs_nodes
def test_ranks_know_who_they_are(tmp_path: Path):
    show = (
        "import os; open(f'{os.sys.argv[1]}/' + os.environ['FORETRAIN_NODE'], 'w').write(' '.join("
        "os.environ[k] for k in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MORE')))"
    )
    command = [sys.executable, "-c", show, str(tmp_path)]
    with Emulation(Settings(nodes=3)) as emulation:
        emulation.run(command, environment={"MORE": "x"})
        found = [(tmp_path / f"node{node}").read_text() for node in range(3)]
        assert found == [f"{rank} 3 0 10.77.0.1 x" for rank in range(3)]
        emulation.run(command, nodes=2, alone=True, environment={"MORE": "x"})
        assert (tmp_path / "node1").read_text() == "0 1 0 10.77.0.2 x"
        with pytest.raises(EmulationError, match="4 nodes were asked for"):
            emulation.run(command, nodes=4)


@needs_nodes
def test_the_first_failure_ends_the_others():
    script = "import os, sys, time; time.sleep(60 * (os.environ['RANK'] == '0')); sys.exit(7)"
    with Emulation(Settings(nodes=2)) as emulation:
        start = time.monotonic()
        outcome = emulation.run([sys.executable, "-c", script])
        assert time.monotonic() - start < 20
        assert outcome.code == 7 and "node 1 failed with 7" in (outcome.why or "")
        late = emulation.run(["sleep", "60"], timeout=0.3)
        assert late.code == 124 and "did not end within" in (late.why or "")
        missing = emulation.run(["no-such-program"])
        assert missing.code != 0


def processes(mark: str) -> list[str]:
    found = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True, check=False)
    return found.stdout.split()


@needs_nodes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(number: int):
    mark = f"86.{os.getpid()}{number}"
    command = [
        sys.executable,
        "-m",
        "foretrain.capture.emulate",
        "--nodes",
        "2",
        "--",
        "sleep",
        mark,
    ]
    run = subprocess.Popen(command, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    # The emulation itself names the mark too.
    while len(processes(f"^sleep {mark}")) < 2:
        assert run.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    run.send_signal(number)
    run.communicate(timeout=30)
    assert run.returncode != 0
    until = time.monotonic() + 10
    while processes(f"^sleep {mark}") and time.monotonic() < until:
        time.sleep(0.05)
    assert processes(f"^sleep {mark}") == []


def test_groups_are_dealt_out_and_stale_ones_removed(tmp_path: Path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    stale = tmp_path / "foretrain-emulate-999999999"
    (stale / "node0").mkdir(parents=True)
    other = tmp_path / "foretrain-emulate-of-somebody"
    other.mkdir()
    assert remove_stale(tmp_path) == [stale.name]
    assert other.exists()
    # A plain directory has no subtree_control until somebody writes to it.
    groups = Groups(2, 0.5, tmp_path)
    assert [(group / "cpu.max").read_text() for group in groups.nodes] == ["2500 5000"] * 2
    assert (groups.nodes[0].parent / "cpu.weight").read_text() == "10000"


def test_nodes_share_cores_in_turn():
    assert cores_of(4, 2, [3, 5]) == [3, 3, 5, 5]
    assert cores_of(3, 2, [0, 1]) == [0, 0, 1]
    with pytest.raises(EmulationError, match="need 3 cores, and 2 may be used"):
        cores_of(5, 2, [0, 1])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(EmulationError, match="not up"):
        Emulation(Settings(nodes=2)).run(["true"])
    for arguments, words in [
        (["--nodes", "2"], "give a script"),
        (["--nodes", "0", "--", "true"], "no number from 1"),
        (["--nodes", "2", "--bandwidth", "fast", "--", "true"], "is no rate"),
        (["--nodes", "2", "--cores", "0.5", "--nodes-per-core", "2", "--", "true"], "give one"),
        (["--nodes", "2", "--", "missing.py"], "there is no script missing.py"),
        (["--nodes", "2", "--replay", "nowhere"], "no such file or directory (nowhere)"),
    ]:
        command = [sys.executable, "-m", "foretrain.capture.emulate", *arguments]
        if REASON and words.startswith(("there is", "no such file")):
            continue
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 2 and words in run.stderr, run.stderr
        assert "Traceback" not in run.stderr
