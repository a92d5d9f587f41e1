"""Errors are the command's, as exceptions."""

from __future__ import annotations

import pickle

import foretrain
import pytest
from foretrain import ForetrainError, UsageError


def test_messages_are_those_of_the_command(job, examples, command) -> None:
    with pytest.raises(ForetrainError) as raised:
        foretrain.predict(job, on="dgx-a10", gpus=2)
    code, _, said = command("predict", examples / "ddp-tiny", "--on", "dgx-a10", "--gpus", 2)
    assert code == 2
    assert f"error: {raised.value}\n" == said
    assert raised.value.hints and raised.value.message not in raised.value.hints


def test_files_and_places_are_told(tmp_path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("no trace")
    with pytest.raises(ForetrainError) as raised:
        foretrain.load(broken)
    assert raised.value.path == str(broken)
    assert str(broken) in str(raised.value)


def test_missing_files() -> None:
    with pytest.raises(ForetrainError, match="nowhere"):
        foretrain.load("nowhere/at/all")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"on": "dgx-a100", "gpu": 2},
            "unexpected keyword argument 'gpu'.*\nhint: did you mean 'gpus'",
        ),
        ({"on": "dgx-a100", "gpus": 2, "json": True}, "to_dict"),
        ({"on": "dgx-a100", "gpus": 2, "explain": "yes"}, "explain='yes': expected True or False"),
        ({"on": ["dgx-a100", "dgx-h100"], "gpus": 2}, "on takes one value, not 2"),
        ({"on": "dgx-a100", "gpus": object()}, "cannot write a object as an option"),
        ({"gpus": 2}, "--on"),
        ({"on": "dgx-a100", "gpus": "two"}, "two"),
    ],
)
def test_keywords_are_checked(job, options, said) -> None:
    with pytest.raises(UsageError, match=said) as told:
        foretrain.predict(job, **options)
    # Nobody who calls a function wants to know how the command is called.
    assert "Usage:" not in str(told.value) and not str(told.value).startswith("error")
    # It is a TypeError too, as for any function.
    with pytest.raises(TypeError):
        foretrain.predict(job, **options)


def test_too_many_positional_arguments() -> None:
    with pytest.raises(UsageError, match="takes 1 positional"):
        foretrain.models("gpt-2", "gpt-3")


def test_errors_are_pickled() -> None:
    error = ForetrainError("wrong", ["do it right"], "file", "line 3")
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.hints, again.path, again.place) == (
        "wrong",
        ["do it right"],
        "file",
        "line 3",
    )
    assert str(again) == "wrong\nhint: do it right"


def test_values_of_numpy_are_values(examples) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    given = {"on": "dgx-a100", "step_time": "12ms"}
    plain = foretrain.predict(examples / "ddp-tiny", gpus=8, strict=True, **given).to_dict()
    same = foretrain.predict(
        examples / "ddp-tiny",
        on="dgx-a100",
        step_time=numpy.timedelta64(12_000, "us"),
        gpus=numpy.array(8),
        strict=numpy.True_,
    )
    assert same.to_dict() == plain
