"""Rewrite passes, cost functions, models of interference and scheduling policies of your own.

Each joins the registry that the engine's own are in, for the life of the process; registering again
under the same name takes the place of the earlier one.

    @foretrain.plugins.rewrite_pass(stage="fuse", parameters={"part": 0.5})
    def freeze(draft, part):
        "Leaves out the gradients of the front layers."
        ...

    foretrain.predict(job, on="dgx-a100", gpus=64, strategy="freeze(0.25) | fuse(25MiB)")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import _native
from ._native import Board, Draft, Exchange

__all__ = [
    "Board",
    "Draft",
    "Exchange",
    "cost_function",
    "interference",
    "policy",
    "rewrite_pass",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# What has been registered here, of all kinds.
_registered: set[str] = set()


# What options and strategies can spell.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def _check(function: Any) -> None:
    if not callable(function):
        raise TypeError(f"expected a function, not {type(function).__name__}")


def _name(given: str | None, function: Any = None) -> str:
    """What a function is registered as: the name that was given, or its own."""
    name = getattr(function, "__name__", "") if given is None else given
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name to register a function by: expected letters, digits, dashes, dots "
            "and underscores after a letter, as in 'my-pass'"
        )
    return name


def rewrite_pass(
    name: str | None = None,
    *,
    stage: str = "schedule",
    about: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Registers a function as a pass of synchronisation strategies.

    The function takes a `Draft` and changes its `exchanges`: reorders, merges
    (`Exchange.merged([a, b])`), splits (`exchange.split(bytes)`) or removes them, or sets their
    `priority`, `codec`, `way` and `delay_ns`. `draft.cost_ns("all-reduce", bytes)` asks what an
    operation takes on the cluster.

    `parameters` maps names to defaults, whose types tell what a strategy may write: `bool`, `int`,
    `float`, or text with a unit for sizes ("25MiB") and times ("5ms"), which arrive as bytes and
    nanoseconds. Stages are step, fuse, shard, partition, compress, topology and schedule; passes are
    applied in that order. The pass is called as the function, with dashes for underscores.
    """

    def register(function: _Function) -> _Function:
        _check(function)
        called = _name(name, function)
        called = called.replace("_", "-") if name is None else called
        described = about or (function.__doc__ or "A pass of your own.").strip().split("\n\n")[0]
        known = [_parameter(key, value) for key, value in (parameters or {}).items()]
        _native.install_pass(called, stage, " ".join(described.split()), known, function)
        _registered.add(called)
        return function

    return register


def _parameter(name: str, default: Any) -> tuple[str, str, str | None, str]:
    if isinstance(default, bool):
        kind, text = "flag", "true" if default else "false"
    elif isinstance(default, int):
        kind, text = "count", str(default)
    elif isinstance(default, float):
        kind, text = "number", repr(default)
    elif isinstance(default, str):
        kind = "time" if default.rstrip().endswith("s") else "size"
        text = default
    else:
        given = type(default).__name__
        raise TypeError(f"parameter {name}: a default is a bool, int, float or text, not {given}")
    return name, kind, text, f"{default} by default."


def cost_function(
    name: str,
    *,
    collective: Callable[..., float | None] | None = None,
    node: Callable[..., float | None] | None = None,
) -> None:
    """Registers times of your own, which `predict` and `whatif` take by `costs=name`.

    `collective(kind, bytes, ranks, nodes, modelled_ns)` is asked for every operation between ranks,
    `node(name, kind, phase, module, dtype, flops, bytes, modelled_ns)` for everything else in a
    step; all are keywords. They return nanoseconds, or None to keep the model's.
    """
    for function in (collective, node):
        if function is not None:
            _check(function)
    _native.install_costs(_name(name), collective, node)
    _registered.add(name)


def interference(name: str | None = None) -> Callable[[_Function], _Function]:
    """Registers a function as a model of how computation and communication on a device slow each
    other down, which `predict` and `whatif` take by `interference=name`.

    The function takes a list of running activities (dictionaries with `activity`, "kernel" or
    "transfer", and `alone_ns`, and what docs/python.md lists) and the limits of the device, and
    returns how many times longer each takes than alone, in the same order. It must depend on nothing
    else.
    """

    def register(function: _Function) -> _Function:
        _check(function)
        called = _name(name, function)
        _native.install_interference(called, function)
        _registered.add(called)
        return function

    return register


def policy(
    name: str | None = None, *, about: str | None = None, interval: float | None = None
) -> Callable[[_Function], _Function]:
    """Registers a function as a scheduling policy, which `fleet.schedule(policy=name)` takes.

    The function takes a `Board` and starts and stops jobs on it, whenever a job arrives, ends or
    loses its machine, or every `interval` seconds. It must be deterministic. What it keeps between
    calls is its own affair: studies with several runs play the same jobs again.
    """

    def register(function: _Function) -> _Function:
        _check(function)
        called = _name(name, function).replace("_", "-").lower()
        described = about or (function.__doc__ or "a policy of your own").strip().split("\n\n")[0]
        _native.install_policy(called, " ".join(described.split()), function, interval)
        _registered.add(called)
        return function

    return register
