"""The command's verbs as functions."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from . import _native
from ._answer import Answer
from ._arguments import Argument, unknown
from ._cli import PROGRAM
from ._errors import UsageError


def _settle(process: int) -> None:
    # A forked child has none of the threads that it knows of.
    if os.getpid() == process:
        _native.settle()


# The interpreter must not end while the engine runs functions in it.
atexit.register(_settle, os.getpid())

# Verbs that take a cost function of the user's own.
_WITH_COSTS = ("predict", "whatif")
# What only reading is told.
_READING = ("ranks", "steps", "window", "strict", "no_python", "memory_cap")


class _Verb:
    """A verb and its arguments."""

    def __init__(self, name: str, described: dict[str, Any]) -> None:
        self.name = name
        self.about: str = described["about"] or ""
        arguments = [Argument(one) for one in described["arguments"]]
        self.positional = [one for one in arguments if one.positional]
        self.options = {one.name: one for one in arguments if not one.positional}


class _Verbs(Mapping[str, _Verb]):
    """All verbs by their names. Each is looked at when it is first used."""

    def __init__(self) -> None:
        self._names = _native.verbs()
        self._known: dict[str, _Verb] = {}

    def __getitem__(self, name: str) -> _Verb:
        if name not in self._known:
            described = _native.describe(name)
            if described is None:
                raise KeyError(name)
            self._known[name] = _Verb(name, json.loads(described))
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@functools.cache
def verbs() -> Mapping[str, _Verb]:
    """All verbs by their names, as in `fleet schedule`."""
    return _Verbs()


def written(
    verb: str, given: Sequence[Any], options: dict[str, Any]
) -> tuple[list[str], list[tuple[str, Any]]]:
    """Arguments behind the verb's name, and the jobs that they refer to."""
    described = verbs()[verb]
    function = verb.replace(" ", ".")
    held: list[tuple[str, Any]] = []
    arguments: list[str] = []
    positional = {one.name: one for one in described.positional}
    behind: list[str] = []
    for name, value in options.items():
        if name in described.options:
            arguments += described.options[name].written(value, held)
        elif name in positional:
            behind += positional[name].written(value, held)
        else:
            raise unknown(function, name, [*described.options, *positional])
    slots = list(described.positional)
    for value in given:
        if not slots:
            most = len(described.positional)
            raise UsageError(f"{function}() takes {most} positional arguments, not {len(given)}")
        behind += slots[0].written(value, held)
        if not slots[0].several:
            slots.pop(0)
    if held and len(behind) > 1:
        raise UsageError(f"{function}() takes one job in memory, or files", ["name its files"])
    late = [name for name in _READING if held and options.get(name) not in (None, False)]
    if late:
        raise UsageError(
            f"{function}() got {', '.join(late)} for a job that is read already",
            [f"foretrain.load(..., {late[0]}={options[late[0]]!r})"],
        )
    return [*arguments, "--", *behind] if behind else arguments, held


def ask(verb: str, *given: Any, **options: Any) -> Answer:
    """Asks a verb by its name, as in `ask("fleet audit", "jobs.csv")`."""
    if verb not in verbs():
        raise UsageError(f"no verb {verb!r}", [f"verbs are {', '.join(verbs())}"])
    costs = options.pop("costs", None)
    arguments, held = written(verb, given, options)
    if costs is not None:
        if verb not in _WITH_COSTS:
            raise unknown(verb.replace(" ", "."), "costs", verbs()[verb].options)
        arguments = [f"--costs={costs}", *arguments]
    return Answer(verb, _native.ask([*verb.split(), *arguments], held, PROGRAM))


def public(name: str) -> Callable[..., Answer] | SimpleNamespace:
    """The function of a verb, or the functions of a group of verbs."""
    if name in verbs():
        return _function(name)
    group = SimpleNamespace()
    for verb in verbs():
        first, _, rest = verb.partition(" ")
        if first != name:
            continue
        inner = group
        *outer, last = (part.replace("-", "_") for part in rest.split(" "))
        for part in outer:
            if not hasattr(inner, part):
                setattr(inner, part, SimpleNamespace())
            inner = getattr(inner, part)
        setattr(inner, last, _function(verb))
    return group


def _function(name: str) -> Callable[..., Answer]:
    verb = verbs()[name]

    def function(*given: Any, **options: Any) -> Answer:
        return ask(name, *given, **options)

    function.__name__ = name.split(" ")[-1].replace("-", "_")
    function.__qualname__ = name.replace(" ", ".").replace("-", "_")
    function.__module__ = "foretrain"
    function.__doc__ = _doc(verb)
    function.__signature__ = _signature(verb)  # type: ignore[attr-defined]
    return function


def _signature(verb: _Verb) -> inspect.Signature:
    parameters: list[inspect.Parameter] = []
    for argument in verb.positional:
        kind = (
            inspect.Parameter.VAR_POSITIONAL
            if argument.several
            else inspect.Parameter.POSITIONAL_ONLY
        )
        default: Any = inspect.Parameter.empty
        if not argument.several and not argument.required:
            default = None
        parameters.append(inspect.Parameter(argument.name, kind, default=default))
    for argument in verb.options.values():
        default = inspect.Parameter.empty
        if not argument.required:
            default = False if argument.flag else None
        parameters.append(
            inspect.Parameter(argument.name, inspect.Parameter.KEYWORD_ONLY, default=default)
        )
    return inspect.Signature(parameters, return_annotation=Answer)


def _doc(verb: _Verb) -> str:
    lines = [verb.about, ""]
    for argument in [*verb.positional, *verb.options.values()]:
        help_text = " ".join(argument.help.split())
        default = f" [default: {', '.join(argument.defaults)}]" if argument.defaults else ""
        words = f" One of {', '.join(argument.words)}." if argument.words else ""
        kept = not argument.flag
        lines.append(
            f"{argument.name}: {help_text}{words if kept else ''}{default if kept else ''}"
        )
    return "\n".join(lines)
