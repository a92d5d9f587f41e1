"""Keywords of Python as arguments of the command."""

from __future__ import annotations

import keyword
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ._errors import UsageError
from ._job import Job

# Keywords of the command that a function has no use for, and what there is instead.
_INSTEAD = {
    "json": "answer.to_dict() is the document of --json",
    "out": "answer.to_json(path) writes the document",
    "color": "str(answer) has no colour",
    "no_progress": "functions draw no progress",
}


class Argument:
    """One option or positional argument of a verb."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.long: str | None = described["long"]
        self.short: str | None = described["short"]
        self.value: str | None = described["value"]
        self.flag: bool = described["flag"]
        self.several: bool = described["several"]
        self.required: bool = described["required"]
        self.defaults: list[str] = described["defaults"]
        self.words: list[str] = described["words"]
        self.help: str = described["help"] or ""
        self.positional = self.long is None and self.short is None
        name = (self.long or described["name"]).replace("-", "_")
        self.name = f"{name}_" if keyword.iskeyword(name) else name

    @property
    def option(self) -> str:
        """As it is written on a command line."""
        if self.positional:
            return (self.value or self.name).upper()
        return f"--{self.long}" if self.long else f"-{self.short}"

    def written(self, value: Any, held: list[tuple[str, Any]]) -> list[str]:
        """The arguments for a value; jobs among it are put to what is held."""
        if value is None:
            return []
        if self.flag:
            if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
                raise UsageError(f"{self.name}={value!r}: expected True or False")
            return [self.option] if value else []
        words = [self._word(one, held) for one in self._all(value)]
        if self.positional:
            return words
        if self.long:
            return [f"--{self.long}={word}" for word in words]
        return [f"-{self.short}{word}" for word in words]

    def _all(self, value: Any) -> Iterable[Any]:
        if isinstance(value, Mapping):
            return [f"{key}={self._word(item, [])}" for key, item in value.items()]
        if isinstance(value, (str, bytes, os.PathLike, Job)) or not isinstance(value, Iterable):
            return [value]
        if getattr(value, "ndim", 1) == 0:
            # An array of numpy's that is one number.
            return [value.item()]  # type: ignore[attr-defined]
        values = list(value)
        if len(values) > 1 and not self.several:
            raise UsageError(f"{self.name} takes one value, not {len(values)}")
        return values

    def _word(self, value: Any, held: list[tuple[str, Any]]) -> str:
        if isinstance(value, Job):
            if not self.positional:
                raise UsageError(f"{self.name} takes no job")
            name = f"job {len(held) + 1} in memory"
            held.append((name, value._native))
            return name
        if isinstance(value, bool):
            return "true" if value else "false"
        # What has not been imported is nobody's.
        datetime = sys.modules.get("datetime")
        if datetime is not None and isinstance(value, datetime.timedelta):
            whole = value.days * 86_400 + value.seconds
            return f"{whole * 1_000_000_000 + value.microseconds * 1_000}ns"
        if isinstance(value, (str, bytes, os.PathLike)):
            return os.fsdecode(value)
        if type(value).__name__ == "timedelta64":
            return f"{int(value.astype('timedelta64[ns]').astype('int64'))}ns"
        # Integers of numpy and others stand for themselves.
        if hasattr(value, "__index__"):
            number = int(value)
            return f"{number}B" if self.value == "SIZE" else str(number)
        if isinstance(value, float) or hasattr(value, "__float__"):
            return repr(float(value))
        kind = type(value).__name__
        raise UsageError(f"{self.name}={value!r}: cannot write a {kind} as an option")


def unknown(verb: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a keyword that a verb does not take."""
    error = f"{verb}() got an unexpected keyword argument '{name}'"
    if name in _INSTEAD:
        return UsageError(error, [_INSTEAD[name]])
    import difflib

    near = difflib.get_close_matches(name, list(known), 1)
    return UsageError(error, [f"did you mean '{near[0]}'?"] if near else [])
