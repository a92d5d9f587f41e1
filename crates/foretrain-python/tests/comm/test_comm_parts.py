"""The parts of a sweep that need no library: sizes, subsets, tables, budgets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from foretrain.capture.comm import Plan, Unsupported, sweep
from foretrain.capture.comm.arguments import parse
from foretrain.capture.comm.group import Call
from foretrain.capture.comm.quantities import (
    parse_bytes,
    parse_rate,
    parse_seconds,
    parse_sizes,
    quantile,
    size_text,
)
from foretrain.capture.comm.subsets import subsets
from foretrain.capture.comm.sweep import COLUMNS
from foretrain.capture.comm.table import Table


def test_quantities_are_read_with_their_units():
    assert [parse_bytes(t) for t in ("4096", "64K", "1MiB", "1MB")] == [4096, 65536, 1 << 20, 10**6]
    assert [parse_seconds(t) for t in ("90", "90s", "2min", "500ms")] == [90, 90, 120, 0.5]
    assert [parse_rate(t) for t in ("200mbit", "1gbit", "1.5Gbit/s")] == [2e8, 1e9, 1.5e9]
    assert parse_sizes("1K..10K,4") == [4, 1024, 4096, 10240]
    assert [size_text(n) for n in (5, 65536, 1536, 1 << 30)] == [
        "5 B",
        "64 KiB",
        "1.5 KiB",
        "1 GiB",
    ]
    assert quantile([1, 2, 4], 0.5) == 2 and quantile([1, 3], 0.25) == 1.5
    assert quantile([], 0.5) != quantile([], 0.5)


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_bytes, "fast"),
        (parse_bytes, "-1K"),
        (parse_bytes, "1e999"),
        (parse_sizes, "8M..1K"),
        (parse_sizes, "1"),
        (parse_sizes, ""),
        (parse_seconds, "0s"),
        (parse_rate, "200"),
        (parse_rate, "1kbit"),
    ],
)
def test_what_is_no_quantity_is_refused_in_words(parser, text):
    with pytest.raises(ValueError, match="is no|slower|write it|smallest size is an element"):
        parser(text)


def test_subsets_are_all_powers_of_two_and_one_of_each_node():
    one_node = [(len(s.ranks), s.nodes) for s in subsets([0] * 6)]
    assert one_node == [(6, 1), (4, 1), (2, 1)]
    # Two nodes of four: ranks alternate between them.
    two = subsets([0, 1] * 4)
    assert [(s.ranks, s.nodes) for s in two] == [
        (tuple(range(8)), 2),
        ((0, 2, 4, 6), 1),
        ((0, 2), 1),
        ((0, 1), 2),
    ]
    assert [len(s.ranks) for s in subsets([0] * 6, only=[4])] == [4]
    assert subsets([0]) == []


def test_rows_are_on_the_disk_at_once(tmp_path: Path):
    path = tmp_path / "new" / "table.csv"
    with Table(path, ["a", "b"], ["by a\ntest"]) as table:
        assert not path.exists()
        table.row({"a": 1, "b": 0.123456})
        table.note("no time\nleft")
        assert path.read_text() == "# by a test\na,b\n1,0.1235\n# no time left\n"
        with pytest.raises(ValueError, match="no column 'c'"):
            table.row({"c": 1})
    with pytest.raises(FileExistsError, match="--overwrite"):
        Table(path, ["a"])
    Table(path, ["a"], overwrite=True).close()
    assert path.exists(), "a table without rows replaces nothing"


class Clock:
    """A call takes as long as it says."""

    def __init__(self) -> None:
        self.runs = 0

    def one(self, call: Call) -> float:
        self.runs += 1
        seconds = call()
        assert isinstance(seconds, float)
        return seconds

    def blocks(self, call: Call, blocks: int, calls: int) -> list[float]:
        return [self.one(call) for _ in range(blocks)]


class World:
    """One process that stands for all ranks of a made-up library."""

    library, device, node, rank = "made-up", "cpu", 0, 0

    def __init__(self, ranks: int) -> None:
        self.size = ranks
        self.nodes_of = [0] * ranks
        self.made: list[tuple[int, str, int]] = []
        self._clock = Clock()

    def barrier(self) -> None: ...

    def agree(self, value: float) -> float:
        return value

    def greatest(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def operation(self, name: str, size: int) -> tuple[Call, int]:
        if name == "all_to_all":
            raise Unsupported("all_to_all is not there in this library")
        self.made.append((self.size, name, size))
        # A microsecond per byte: a megabyte takes a second.
        return (lambda: size * 1e-6), size

    def subgroup(self, ranks: Sequence[int]) -> World:
        group = World(len(ranks))
        group.made = self.made
        return group

    def clock(self) -> Clock:
        return self._clock

    def close(self) -> None: ...


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_a_sweep_keeps_to_its_budget_and_notes_what_it_left_out(tmp_path: Path):
    world, path = World(4), tmp_path / "comm.csv"
    plan = Plan([1024, 1 << 20], budget=5.0, progress=None)
    with Table(path, COLUMNS) as table:
        measured = sweep(world, plan, table)
    found = rows(path)
    assert measured == len(found) > 0
    first = found[0]
    assert (first["world"], first["bytes"], first["op"]) == ("4", "1024", "all_reduce")
    assert float(first["time_us"]) == pytest.approx(1024.0)
    # A megabyte takes a second, and the fewest calls seven and a half: more than there is.
    assert {row["bytes"] for row in found} == {"1024"}
    notes = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert any("1 MiB and more on 4 ranks: no time left" in note for note in notes)
    assert any("all_to_all is not there" in note for note in notes)
    # Messages are for two; a ping-pong is two of them.
    by = {(row["world"], row["op"]): float(row["time_us"]) for row in found}
    assert ("4", "sendrecv") not in by and by["2", "sendrecv"] == pytest.approx(512.0)
    assert by["2", "send"] == pytest.approx(1024.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "huge"], "'huge' is no size"),
        (["--ops", "all_reduce,gossip"], "no operation 'gossip'"),
        (["--ranks", "1,2"], "nobody to communicate with"),
        (["--nproc", "0"], "no number of processes"),
        (["--budget", "0s"], "is no time"),
        (["--tables", "all"], "no table 'all'"),
        (["--backend", "carrier-pigeon"], "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_refused_in_words(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_names_may_be_written_with_hyphens():
    assert parse(["--ops", "all-reduce,send"]).operations == ["all_reduce", "send"]
