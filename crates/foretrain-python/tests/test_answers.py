"""Answers are those of the command, in every form."""

from __future__ import annotations

import json
import pickle
from html.parser import HTMLParser

import foretrain
import pytest


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("predict", {"on": "dgx-a100", "gpus": [2, 16, 128]}),
        ("inspect", {}),
        ("whatif", {"change": ["bandwidth x2", 'kernel("*gemm*") x0.8']}),
        ("plan", {"on": "dgx-a100", "gpus": [16]}),
    ],
)
def test_a_job_is_asked_as_the_command_is(verb, options, job, examples, command) -> None:
    answer = foretrain.ask(verb, job, **options)
    arguments = [verb, examples / "ddp-tiny"]
    for name, value in options.items():
        values = value if isinstance(value, list) else [value]
        arguments += [f"--{name}={one}" for one in values]
    code, text, _ = command(*arguments)
    assert str(answer) == text
    assert code == (0 if answer.holds else 1)
    _, document, _ = command(*arguments, "--json")
    assert answer.to_dict() == json.loads(document)
    # Files give the same as what was read before.
    assert foretrain.ask(verb, examples / "ddp-tiny", **options).to_dict() == answer.to_dict()


@pytest.mark.parametrize(
    ("function", "given", "options"),
    [
        (lambda: foretrain.estimate, ["llama-3-8b"], {"on": "dgx-h100", "gpus": 64, "batch": 512}),
        (lambda: foretrain.collectives, [], {"on": "dgx-h100", "gpus": 16, "sizes": ["1M", "1G"]}),
        (lambda: foretrain.models, ["gpt-2"], {}),
        (lambda: foretrain.strategies, [], {}),
        (lambda: foretrain.hardware.list, [], {}),
        (lambda: foretrain.hardware.show, ["dgx-a100"], {}),
        (
            lambda: foretrain.scaling,
            [],
            {"point": ["8=2697", "16=2633"], "unit": "img/s", "gradient_bytes": "102MB"},
        ),
    ],
)
def test_verbs_without_recordings(function, given, options) -> None:
    answer = function()(*given, **options)
    assert answer.text and answer.schema.startswith("foretrain/")
    assert answer.tables
    for table in answer.tables:
        assert answer.rows(table), table


def test_fields_are_attributes(job) -> None:
    answer = foretrain.predict(job, on="dgx-a100", gpus=[2, 16])
    first = answer.sizes[0]
    assert first.gpus == 2 and first["gpus"] == 2
    assert answer.data.sizes[1].gpus == 16
    assert first.step_time.low_ns < first.step_time.value_ns < first.step_time.high_ns
    with pytest.raises(AttributeError, match="no field 'size'; fields: .*sizes"):
        _ = answer.size
    with pytest.raises(AttributeError, match="no field 'gpu'"):
        _ = first.gpu


def test_tables_are_frames(job) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    answer = foretrain.predict(job, on="dgx-a100", gpus=[2, 16, 128])
    frame = answer.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["gpus"]) == [2, 16, 128]
    assert answer.to_polars().equals(polars.from_pandas(frame)) or len(answer.to_polars()) == 3
    for table in answer.tables:
        assert len(answer.to_pandas(table)) == len(answer.to_polars(table)) > 0
    with pytest.raises(KeyError, match="no table 'places'"):
        answer.to_pandas("places")


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_notebooks_show_tables(job) -> None:
    answer = foretrain.predict(job, on="dgx-a100", gpus=[2, 16])
    checker = _Checker()
    checker.feed(answer._repr_html_())
    assert not checker.open
    assert {"table", "th", "td", "h3"} <= checker.seen
    assert "script" not in checker.seen
    assert "Step time on dgx-a100" in answer._repr_html_()


def test_answers_are_pickled_and_written(job, tmp_path) -> None:
    answer = foretrain.predict(job, on="dgx-a100", gpus=[2])
    again = pickle.loads(pickle.dumps(answer))
    assert again.to_dict() == answer.to_dict() and str(again) == str(answer)
    text = answer.to_json(tmp_path / "answer.json")
    assert (tmp_path / "answer.json").read_text() == text
    assert json.loads(text)["schema"] == answer.schema


def test_a_diagnosis_puts_remedies_in_order(job) -> None:
    diagnosis = foretrain.diagnose(job)
    steps = [row["outcome.step_time.value_ns"] for row in diagnosis.remedies]
    assert len(steps) > 3 and steps == sorted(steps)
    assert "Where the step" in str(diagnosis) and "<table>" in diagnosis._repr_html_()


def test_a_job_in_memory_is_read_already(job) -> None:
    with pytest.raises(foretrain.UsageError, match="ranks for a job that is read already") as told:
        foretrain.predict(job, on="dgx-a100", gpus=8, ranks="0")
    assert told.value.hints == ["foretrain.load(..., ranks='0')"]
    with pytest.raises(foretrain.UsageError, match="one job in memory, or files"):
        foretrain.inspect(job, job)


def test_what_is_no_document_is_not_written(job, tmp_path) -> None:
    answer = foretrain.export(job, graph=tmp_path / "step.parquet")
    with pytest.raises(ValueError, match="no document"):
        answer.to_json(tmp_path / "empty.json")
    assert not (tmp_path / "empty.json").exists()
