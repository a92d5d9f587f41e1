"""Answers: documents that print, draw and tabulate themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import polars

# What `to_pandas()` shows unless told otherwise, by the document's schema.
_MAIN = {
    "foretrain/predict": "sizes",
    "foretrain/plan": "places",
    "foretrain/inspect": "ranks",
}


class Record(Mapping[str, Any]):
    """An object of a document: a mapping whose keys are attributes too."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._data[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._data:
            raise AttributeError(f"no field {name!r}; there are {', '.join(self._data)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._data if key.isidentifier())]

    def __repr__(self) -> str:
        return f"Record({self._data!r})"

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return self._data

    # Slots and a mapping's own methods would otherwise meet in pickles.
    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return Record, (self._data,)


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


class Frames:
    """Rows that become frames."""

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table, or of the main one."""
        raise NotImplementedError

    def to_pandas(self, table: str | None = None) -> pandas.DataFrame:
        """The rows as a pandas DataFrame (see `rows`)."""
        import pandas

        return pandas.DataFrame.from_records(self.rows(table))

    def to_polars(self, table: str | None = None) -> polars.DataFrame:
        """The rows as a polars DataFrame (see `rows`)."""
        import polars

        return polars.from_dicts(self.rows(table), infer_schema_length=None)


class Answer(Frames):
    """What a verb answered.

    `str(answer)` is the command's page, `answer.data` its JSON document with the fields as
    attributes (`answer.sizes[0].step_time_ns`). `holds` is whether what was asked for holds: False
    where the command ends with exit code 1. `notes` are what the command says beside the answer.
    """

    def __init__(self, verb: str, kept: dict[str, Any]) -> None:
        self.verb = verb
        self.text: str = kept["text"]
        self.notes: list[str] = kept["notes"]
        self.holds: bool = kept["holds"]
        self._json: str | None = kept["json"]
        self._html: str | None = kept["html"]
        self._document: dict[str, Any] | None = None

    @property
    def _data(self) -> dict[str, Any]:
        if self._document is None:
            self._document = json.loads(self._json) if self._json else _lines(self.text)
        return self._document

    @property
    def data(self) -> Record:
        """The document. Times are whole nanoseconds in fields that end in `_ns`."""
        return Record(self._data)

    @property
    def schema(self) -> str | None:
        """Name and version of the document's form, as in `foretrain/predict/1`."""
        return self._data.get("schema")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        data = self._data
        if name not in data:
            known = ", ".join(key for key in data if key != "schema") or "none"
            raise AttributeError(
                f"the answer of {self.verb} has no field {name!r}; fields: {known}"
            )
        return _wrapped(data[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        first = self.text.strip().split("\n", 1)[0]
        return f"<Answer of {self.verb}: {first}>"

    def _repr_html_(self) -> str | None:
        return self._html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self.text)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries and lists."""
        return self._data

    def to_json(self, path: str | Path | None = None) -> str:
        """The document as the command prints it; also written to `path`, if one is given.

        Raises ValueError for answers that are no document.
        """
        if self._json is None:
            raise ValueError(f"the answer of {self.verb} is no document; str(answer) is all of it")
        text = self._json
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    @property
    def tables(self) -> list[str]:
        """Names of the document's lists of objects, as `rows` and `to_pandas` take them."""
        found: list[str] = []
        _find_tables(self._data, "", found)
        return found

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table, with nested fields flattened (`step_time.lower_ns`).

        `table` names a list of the document, as in `sizes`; the main one by default. A list within
        the objects of another one (`sizes.owners`) is put together from all of them, with the place
        of each in the outer list beside it.
        """
        name = self._main_table() if table is None else table
        if name not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise KeyError(f"no table {name!r} in the answer of {self.verb}; tables: {known}")
        return _rows(self._data, name.split("."), {})

    def _main_table(self) -> str:
        tables = self.tables
        form = (self.schema or "").rsplit("/", 1)[0]
        wanted = _MAIN.get(form)
        if wanted in tables:
            return wanted
        if not tables:
            raise KeyError(f"the answer of {self.verb} holds no table")
        return tables[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_document": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def packed(self) -> bytes:
        """All of it as bytes, the same for the same answer."""
        return json.dumps(self.__getstate__(), sort_keys=True).encode()

    @classmethod
    def unpacked(cls, packed: bytes) -> Answer:
        """What was packed."""
        answer = cls.__new__(cls)
        answer.__setstate__(json.loads(packed))
        return answer


def _lines(text: str) -> dict[str, Any]:
    """Rows that are written one object to a line; of other text there is no document."""
    if not text.startswith("{"):
        return {}
    return {"rows": [json.loads(line) for line in text.splitlines()]}


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _find_tables(value: Any, prefix: str, found: list[str]) -> None:
    """Names of tables, outer ones first."""
    later: list[tuple[dict[str, Any], str]] = []
    for key, item in value.items():
        name = f"{prefix}{key}"
        if _is_table(item):
            if name not in found:
                found.append(name)
            later.extend((row, f"{name}.") for row in item)
        elif isinstance(item, dict):
            later.append((item, f"{name}."))
    for item, name in later:
        _find_tables(item, name, found)


def _rows(value: Any, path: list[str], outer: dict[str, Any]) -> list[dict[str, Any]]:
    item = value.get(path[0]) if isinstance(value, dict) else None
    if item is None:
        return []
    if len(path) > 1:
        if not isinstance(item, list):
            return _rows(item, path[1:], outer)
        key = path[0]
        return [
            row
            for at, inner in enumerate(item)
            for row in _rows(inner, path[1:], {**outer, key: at})
        ]
    return [{**outer, **_flat(row)} for row in item]


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in row.items():
        if isinstance(item, dict):
            flat.update(_flat(item, f"{prefix}{key}."))
        elif not _is_table(item):
            flat[f"{prefix}{key}"] = item
    return flat
