"""Work that is cut up gives what is done at once, bit for bit."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import foretrain
import pytest
from foretrain import distributed
from foretrain.capture.emulate.cluster import NODE, describe
from foretrain.distributed import TaskError
from foretrain.distributed._run import Task, run

PLAN = {"on": ["dgx-a100", "dgx-h100"], "gpus": [8, 16, 32], "batch": 64}


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two workers on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    # Workers cannot import this file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield ray
    ray.shutdown()


def test_plans_in_shards_are_the_plan(tmp_path) -> None:
    foretrain.plan("llama-3-8b", write_scenarios=tmp_path / "all.jsonl", **PLAN)
    whole = foretrain.plan(scenarios=tmp_path / "all.jsonl")
    for shards in (1, 4, None):
        cut = distributed.plan("llama-3-8b", backend="local", shards=shards, **PLAN)
        assert cut.text == whole.text
    assert len(whole.rows()) == 6


def test_sweeps_are_single_answers(examples) -> None:
    grid = {"on": ["dgx-a100", "dgx-h100"], "gpus": [2, 16]}
    sweep = distributed.sweep("predict", examples / "ddp-tiny", grid=grid, backend="local")
    assert sweep.points[1] == {"on": "dgx-a100", "gpus": 16} and len(sweep) == 4
    for point, answer in sweep:
        alone = foretrain.predict(examples / "ddp-tiny", **point)
        assert (answer.to_json(), str(answer)) == (alone.to_json(), str(alone))
    assert [row["gpus"] for row in sweep.rows()] == [2, 16, 2, 16]


def test_traces_are_ingested(examples, tmp_path) -> None:
    files = sorted((examples / "ddp-tiny").glob("*.json.gz"))
    one, two = distributed.ingest(files, backend="local")
    assert one.answer.ranks[0].rank == 0 and two.answer.ranks[0].rank == 1
    one.save_graph(tmp_path / "ours.parquet")
    foretrain.export(files[0], graph=tmp_path / "theirs.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()


def test_what_is_there_is_not_done_again(examples, tmp_path) -> None:
    grid = {"gpus": [2, 16]}
    given = {"on": "dgx-a100", "directory": tmp_path / "kept", "backend": "local"}
    first = distributed.sweep("predict", examples / "ddp-tiny", grid=grid, **given)
    kept = sorted((tmp_path / "kept").iterdir())
    times = [one.stat().st_mtime_ns for one in kept]
    # A file that was cut off is done again, the other is not.
    kept[0].write_bytes(kept[0].read_bytes()[:-10])
    second = distributed.sweep("predict", examples / "ddp-tiny", grid=grid, **given)
    assert [str(one) for one in first.answers] == [str(one) for one in second.answers]
    assert kept[1].stat().st_mtime_ns == times[1] and len(list((tmp_path / "kept").iterdir())) == 2
    # Other options are other tasks.
    distributed.sweep("predict", examples / "ddp-tiny", grid=grid, explain=True, **given)
    assert len(list((tmp_path / "kept").iterdir())) == 4


def test_a_file_that_changed_is_another_task(examples, tmp_path) -> None:
    hardware = describe(tmp_path / "links.toml", 1e9)
    asked = {"on": NODE, "hardware": [hardware], "directory": tmp_path / "kept"}

    def step() -> int:
        found = distributed.sweep(
            "predict", examples / "ddp-tiny", grid={"gpus": [4]}, backend="local", **asked
        )
        return found.answers[0].sizes[0].step_time.value_ns

    quick = step()
    assert step() == quick and len(list((tmp_path / "kept").iterdir())) == 1
    describe(hardware, 10e6)
    assert step() > quick and len(list((tmp_path / "kept").iterdir())) == 2


def test_patterns_and_arrays_tell_tasks_apart(examples, tmp_path) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    kept = tmp_path / "kept"
    traces = tmp_path / "traces"
    traces.mkdir()
    for rank in range(2):
        (traces / f"rank{rank}.json.gz").symlink_to(examples / "ddp-tiny" / f"rank{rank}.json.gz")
    given = {"on": "dgx-a100", "directory": kept, "backend": "local"}
    pattern = str(traces / "*.json.gz")
    both = distributed.sweep("predict", pattern, grid={"gpus": [[2]]}, **given)
    (traces / "rank1.json.gz").unlink()
    one = distributed.sweep("predict", pattern, grid={"gpus": [[2]]}, **given)
    assert str(both.answers[0]) != str(one.answers[0])
    sizes = numpy.arange(8, 8808, 8)
    other = sizes.copy()
    other[600] = 16_000
    rows = [
        Task(_slow, (numpy_array,), "task").key() for numpy_array in (sizes, other, sizes.copy())
    ]
    assert rows[0] == rows[2] != rows[1]


def test_what_can_be_gone_through_once_serves_all_points(examples) -> None:
    found = distributed.sweep(
        "predict",
        examples / "ddp-tiny",
        grid={"on": ["dgx-a100", "dgx-h100"]},
        gpus=(size for size in (8, 16)),
        backend="local",
    )
    assert [len(answer.sizes) for answer in found.answers] == [2, 2]
    with pytest.raises(foretrain.UsageError, match="grid"):
        distributed.sweep("predict", examples, grid={"on": "dgx-a100"}, backend="local")
    with pytest.raises(foretrain.UsageError, match="ingest"):
        distributed.ingest("traces", backend="local")


def test_what_depends_on_functions_is_not_kept(examples, tmp_path) -> None:
    foretrain.plugins.cost_function("changing", collective=lambda **_: 1e6)
    asked = {"grid": {"gpus": [2]}, "on": "dgx-a100", "costs": "changing", "backend": "local"}
    distributed.sweep("predict", examples / "ddp-tiny", **asked)
    with pytest.raises(foretrain.UsageError, match="a function of your own, are not kept"):
        distributed.sweep("predict", examples / "ddp-tiny", directory=tmp_path, **asked)


def test_a_failure_is_told_when_the_rest_is_done(examples, tmp_path) -> None:
    grid = {"on": ["no-such-machine", "dgx-a100", "none-either"]}
    with pytest.raises(TaskError, match="predict at on=no-such-machine: .*1 more failed"):
        distributed.sweep(
            "predict", examples / "ddp-tiny", grid=grid, gpus=2, directory=tmp_path, backend="local"
        )
    assert len(list(tmp_path.iterdir())) == 1


def test_jobs_in_memory_stay_there(job) -> None:
    with pytest.raises(foretrain.UsageError, match="name its files"):
        distributed.sweep("predict", job, grid={"gpus": [2]}, on="dgx-a100", backend="local")
    with pytest.raises(foretrain.ForetrainError, match="backend='dask'"):
        distributed.sweep("models", grid={"model": ["gpt-2"]}, backend="dask")


def test_ray_gives_the_same(cluster, examples) -> None:
    files = sorted((examples / "ddp-tiny").glob("*.json.gz"))
    grid = {"gpus": [2, 16, 128]}
    results = []
    for backend in ("local", "ray"):
        plan = distributed.plan("llama-3-8b", backend=backend, **PLAN).text
        sweep = distributed.sweep(
            "predict", examples / "ddp-tiny", grid=grid, on="dgx-a100", backend=backend
        )
        read = distributed.ingest(files, backend=backend)
        answers = [(one.to_json(), str(one), one._repr_html_()) for one in sweep.answers]
        results.append((plan, answers, [(one.answer.to_json(), one._graph) for one in read]))
    assert results[0] == results[1]


def _killed_once(marker: str, result: str) -> bytes:
    """Kills its worker the first time it is called."""
    if not os.path.exists(marker):
        with open(marker, "x") as file:
            file.write(str(os.getpid()))
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    return result.encode()


def test_a_worker_that_is_killed_is_replaced(cluster, tmp_path) -> None:
    tasks = [
        Task(_killed_once, (str(tmp_path / f"{at}"), f"result {at}"), f"task {at}")
        if at == 1
        else Task(_slow, (f"result {at}",), f"task {at}")
        for at in range(6)
    ]
    results = run(tasks, tmp_path / "kept", "ray")
    assert results == [f"result {at}".encode() for at in range(6)]
    assert (tmp_path / "1").exists()


def _slow(result: str) -> bytes:
    time.sleep(0.1)
    return result.encode()


def _at_work() -> list[int]:
    """Processes that run a task of ours."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and b"ray::_remote" in (one / "cmdline").read_bytes():
                found.append(int(one.name))
        except OSError:  # it has ended meanwhile
            pass
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds workers in /proc")
def test_a_plan_survives_the_death_of_a_worker(cluster) -> None:
    asked = {**PLAN, "schedules": "all"}
    whole = distributed.plan("llama-3.1-405b", backend="local", **asked).text
    killed = []

    def kill() -> None:
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            for process in _at_work():
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return
            time.sleep(0.001)

    thread = threading.Thread(target=kill)
    thread.start()
    cut = distributed.plan("llama-3.1-405b", backend="ray", **asked).text
    thread.join()
    assert cut == whole
    assert killed
