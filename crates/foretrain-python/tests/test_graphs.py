"""Step graphs as tables, and changed."""

from __future__ import annotations

import copy
import pickle

import foretrain
import pytest


def test_tables_hold_every_node(job) -> None:
    graph = job.graph()
    assert len(graph.nodes) == len(graph) > 100
    assert {"name", "kind", "work_ns"} <= set(graph.nodes.column_names)
    assert graph.rank == 0 and graph.world_size == 2


def test_arrow_takes_them(job) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    graph = job.graph(1)
    nodes = pyarrow.table(graph.nodes)
    assert nodes.num_rows == len(graph)
    edges = pyarrow.table(graph.edges).to_pydict()
    assert max(edges["src"] + edges["dst"]) < len(graph)


def test_polars_and_numpy_take_them(job) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    graph = job.graph()
    nodes = polars.DataFrame(graph.nodes)
    assert nodes["work_ns"].to_list() == graph.work_ns.tolist()
    assert graph.work_ns.dtype == numpy.int64 and not graph.work_ns.flags.writeable
    kernels = nodes.filter(polars.col("kind") == "kernel")
    assert len(kernels) == len(graph.select("kind:kernel"))


def test_changing_a_graph(job, tmp_path) -> None:
    graph = job.graph()
    before = graph.longest_path_ns
    changed = graph.scale("kind:kernel", 0.5)
    assert changed > 10 and graph.longest_path_ns < before
    # The job keeps its own.
    assert job.graph().longest_path_ns == before
    path = tmp_path / "half.parquet"
    graph.save(path)
    again = foretrain.StepGraph.load(path)
    assert again.longest_path_ns == graph.longest_path_ns
    answer = foretrain.predict(path, on="dgx-a100", gpus=2)
    whole = foretrain.predict(job, on="dgx-a100", gpus=2)
    assert answer.sizes[0].step_time.value_ns < whole.sizes[0].step_time.value_ns


def test_nodes_are_set_and_removed(job) -> None:
    graph = job.graph()
    twin = graph.copy()
    node = graph.select("kind:kernel")[0]
    graph.set_work(node, 7)
    assert graph.work_ns[node] == 7 != twin.work_ns[node]
    kernels = len(graph.select("kind:kernel"))
    assert graph.remove("kind:kernel") == kernels > 10
    assert not graph.select("kind:kernel") and len(graph) < len(twin)


def test_what_is_not_there(job) -> None:
    with pytest.raises(KeyError, match="no rank 9 was read; there are \\[0, 1\\]"):
        job.graph(9)
    with pytest.raises(KeyError, match="no step number 99"):
        job.graph(0, 99)
    graph = job.graph()
    with pytest.raises(foretrain.ForetrainError):
        graph.select("kernel(")
    with pytest.raises(ValueError, match="no node 999999"):
        graph.set_work(999_999, 1)
    with pytest.raises(ValueError, match="work of -1 ns: expected 0 to"):
        graph.set_work(0, -1)


def test_recorded_steps(job) -> None:
    assert set(job.step_times_ns) == {0, 1}
    assert all(len(times) == 3 for times in job.step_times_ns.values())
    assert len(job.graph(0, step=0)) > 100


def test_graphs_are_copied_and_sent_to_other_processes(job) -> None:
    pytest.importorskip("numpy", reason="numpy is not installed")
    graph = job.graph()
    twin, sent = copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))
    graph.scale("kind:kernel", 0.5)
    for other in (twin, sent):
        assert len(other) == len(graph) and other.longest_path_ns > graph.longest_path_ns
    assert (sent.work_ns == twin.work_ns).all()
    assert copy.deepcopy(job) is job
    with pytest.raises(TypeError, match="paths of its files"):
        pickle.dumps(job)
