"""Tables that grow row by row and hold what was measured even if the sweep dies."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType


class Table:
    """A CSV file whose rows are on the disk as soon as they are written.

    ``comments`` are lines before the titles, each behind a ``#``. A file that is already there is
    refused unless ``overwrite`` is set, and then replaced only once the first row is known.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        comments: Sequence[str] = (),
        *,
        overwrite: bool = False,
    ) -> None:
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} is there already: choose another directory with --out, or --overwrite"
            )
        self.path = path
        self.columns = list(columns)
        self.rows = 0
        self._comments = list(comments)
        self._file: io.TextIOWrapper | None = None

    def row(self, values: Mapping[str, object]) -> None:
        """Writes one row. Columns without a value stay empty; floats get four digits."""
        unknown = set(values) - set(self.columns)
        if unknown:
            raise ValueError(f"{self.path.name} has no column {sorted(unknown)[0]!r}")
        self._write([_cell(values.get(column)) for column in self.columns])
        self.rows += 1

    def note(self, text: str) -> None:
        """Writes a comment line."""
        file = self._open()
        file.write("# " + " ".join(text.split()) + "\n")
        self._sync(file)

    def close(self) -> None:
        """Ends the table; without rows no file comes to be."""
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, cells: list[str]) -> None:
        file = self._open()
        csv.writer(file, lineterminator="\n").writerow(cells)
        self._sync(file)

    def _open(self) -> io.TextIOWrapper:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "w", encoding="utf-8", newline="")
            for comment in self._comments:
                self._file.write("# " + " ".join(comment.split()) + "\n")
            csv.writer(self._file, lineterminator="\n").writerow(self.columns)
        return self._file

    @staticmethod
    def _sync(file: io.TextIOWrapper) -> None:
        file.flush()
        os.fsync(file.fileno())


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e4 else f"{value:.1f}"
    return str(value)
