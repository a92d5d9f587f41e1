"""Importing costs little and names everything."""

from __future__ import annotations

import subprocess
import sys

import foretrain


def test_an_import_is_quick() -> None:
    code = "import time; t = time.perf_counter(); import foretrain; print(time.perf_counter() - t)"
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(times) < 0.3


def test_an_import_loads_nothing_heavy() -> None:
    code = "import sys, foretrain; print(sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("numpy", "pandas", "polars", "torch", "ray", "foretrain._native"):
        assert f"'{heavy}'" not in loaded, heavy


def test_every_public_name_is_there() -> None:
    for name in foretrain.__all__:
        assert getattr(foretrain, name) is not None, name
    assert set(foretrain.__all__) <= set(dir(foretrain))


def test_every_verb_of_the_command_is_there(command) -> None:
    _, page, _ = command("--help")
    listed = page.split("Commands:")[1].split("Options:")[0]
    verbs = [
        line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    only_of_a_command_line = {"completions", "help", "schema", "capture"}
    assert len(verbs) > 10
    for verb in set(verbs) - only_of_a_command_line:
        assert hasattr(foretrain, verb), verb


def test_help_lists_the_options() -> None:
    assert "replica_batch: Samples" in foretrain.predict.__doc__
    import inspect

    signature = inspect.signature(foretrain.predict)
    assert signature.parameters["on"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.parameters["on"].default is inspect.Parameter.empty
    assert signature.parameters["explain"].default is False
