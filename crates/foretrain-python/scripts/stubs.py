"""Writes the type stubs of the package from the command's own description of its options.

    python crates/foretrain-python/scripts/stubs.py          # writes them
    python crates/foretrain-python/scripts/stubs.py --check  # fails if they would change

Run it with the package installed, after an option has changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from foretrain import _GROUPS
from foretrain._arguments import Argument
from foretrain._verbs import _WITH_COSTS, _Verb, verbs

FILE = Path(__file__).parents[1] / "python" / "foretrain" / "__init__.pyi"

HEAD = '''\
"""Forecasts distributed deep-learning training from what you already have."""

# Written by scripts/stubs.py; run that instead of changing this.

import datetime
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import distributed as distributed
from . import plugins as plugins
from ._answer import Answer as Answer
from ._answer import Record as Record
from ._diagnosis import Diagnosis as Diagnosis
from ._diagnosis import diagnose as diagnose
from ._errors import ForetrainError as ForetrainError
from ._errors import UsageError as UsageError
from ._job import Job as Job
from ._job import StepGraph as StepGraph
from ._job import load as load
from ._verbs import ask as ask
from .capture import capture as capture

__version__: str

_Path = str | os.PathLike[str]
_Source = _Path | Job
_Time = str | datetime.timedelta
_Size = str | int
'''

# Types by the word that stands for a value on the command line.
TYPES = {
    "SIZE": "_Size",
    "TIME": "_Time",
    "TIMES": "_Time",
    "N": "int | float | str",
    "X": "float | str",
    "COUNTS": "int | str",
    "COUNT": "int",
    "TRACE": "_Source",
    "SUBJECT": "_Source",
    "MODEL": "_Source",
}
for word in ("ANSWER", "CLUSTER", "DIR", "FILE", "FILE.csv", "FILE.svg", "LOG", "PATH", "PROFILE"):
    TYPES[word] = "_Path"
for word in ("ROWS", "TABLE", "TABLE.csv"):
    TYPES[word] = "_Path"
for word in ("KERNEL", "KIND", "KINDS", "LAYOUT", "NAME", "NAMES", "PASSES", "TYPE"):
    TYPES[word] = "str"


def typed(argument: Argument) -> str:
    """The type of a value."""
    if argument.flag:
        return "bool"
    if argument.words:
        return "str"
    one = TYPES.get(argument.value or "", "str | int | float")
    if argument.several and not argument.positional:
        mapping = " | Mapping[str, Any]" if "=" in (argument.value or "") else ""
        return f"{one} | Iterable[{one}]{mapping}"
    return one


def function(name: str, verb: _Verb, indent: str) -> list[str]:
    """The stub of one verb."""
    lines = [f"{indent}def {name}("]
    inner = indent + "    "
    if indent:
        # Methods of a group that nobody makes: they are static.
        lines.insert(0, f"{indent}@staticmethod")
    several = False
    for argument in verb.positional:
        if argument.several:
            several = True
            lines.append(f"{inner}*{argument.name}: {typed(argument)},")
        else:
            default = "" if argument.required else " | None = None"
            lines.append(f"{inner}{argument.name}: {typed(argument)}{default},")
    if verb.positional and not several:
        lines.append(f"{inner}/,")
    if verb.options and not several:
        lines.append(f"{inner}*,")
    for argument in verb.options.values():
        if argument.required:
            end = ""
        elif argument.flag:
            end = " = False"
        else:
            end = " | None = None"
        lines.append(f"{inner}{argument.name}: {typed(argument)}{end},")
    if verb.name in _WITH_COSTS:
        lines.append(f"{inner}costs: str | None = None,")
    about = " ".join(verb.about.split())
    lines += [f"{indent}) -> Answer:", f'{inner}"""{about}"""', ""]
    return lines


def stubs() -> str:
    """The whole file."""
    lines = [HEAD]
    groups: dict[str, list[tuple[list[str], _Verb]]] = {}
    for name, verb in verbs().items():
        first, *rest = (part.replace("-", "_") for part in name.split(" "))
        if rest and first in _GROUPS:
            groups.setdefault(first, []).append((rest, verb))
        elif not rest and name not in ("completions", "schema"):
            lines += function(first, verb, "")
    for group, members in groups.items():
        lines += namespace(group, members, "")
    return "\n".join(lines).rstrip() + "\n"


def namespace(name: str, members: list[tuple[list[str], _Verb]], indent: str) -> list[str]:
    """A group of verbs, as an object that holds them."""
    lines = [f"{indent}class {name}:"]
    inner: dict[str, list[tuple[list[str], _Verb]]] = {}
    for path, verb in members:
        if len(path) == 1:
            lines += function(path[0], verb, indent + "    ")
        else:
            inner.setdefault(path[0], []).append((path[1:], verb))
    for group, deeper in inner.items():
        lines += namespace(group, deeper, indent + "    ")
    return lines


def main() -> int:
    """Writes or checks the file."""
    wanted = stubs()
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != wanted:
            print(f"{FILE} is not what the command's options are: run {Path(__file__).name}")
            return 1
        return 0
    FILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
