"""What a replay needs of a capture: when gradients are ready, their bytes, and how they are
bundled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MIB = 1024 * 1024
#: DDP's own caps where none was given.
_USUAL_CAP, _USUAL_FIRST = 25 * _MIB, _MIB
_LARGEST_FILE = 256 << 20


class ReplayError(Exception):
    """A bundle cannot be replayed; the message says why and what to do."""


@dataclass(frozen=True)
class Recorded:
    """One rank's step, in seconds from its start."""

    #: When each gradient is ready, and its bytes, in order of time.
    gradients: tuple[tuple[float, int], ...]
    #: What follows once gradients are synchronised: the optimiser and the rest of the loop.
    rest: float
    #: Bucket cap in bytes if DDP ran with one.
    cap: int | None


@dataclass(frozen=True)
class Bucket:
    """Gradients that are exchanged together."""

    #: Seconds after the step's start.
    ready: float
    size: int


def read(bundle: Path) -> Recorded:
    """Reads the first rank's capture of a bundle, or the capture file itself."""
    path = bundle if bundle.is_file() else _first(bundle)
    if path.stat().st_size > _LARGEST_FILE:
        raise ReplayError(f"{path} is larger than any capture")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ReplayError(f"{path} is no capture: {error}") from error
    if not isinstance(document, dict) or document.get("foretrain_capture") != 1:
        raise ReplayError(f'{path} is no capture of form 1: it lacks "foretrain_capture": 1')
    try:
        return _recorded(document)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ReplayError(
            f"{path} does not tell when gradients are ready ({error!r}): capture steps with the "
            "model given, so that hooks can be set"
        ) from error


def _first(bundle: Path) -> Path:
    found = sorted(bundle.glob("rank*.capture.json"), key=lambda path: (len(path.name), path.name))
    if not found:
        raise ReplayError(
            f"{bundle} holds no rankN.capture.json: record one with foretrain.capture"
        )
    return found[0]


def _recorded(document: dict[str, Any]) -> Recorded:
    times = document["gradients"]
    ready: list[tuple[float, int]] = []
    for parameter, at in zip(document["model"]["parameters"], times["ready_ns"], strict=True):
        if at is not None:
            ready.append((max(0.0, float(at)) / 1e9, int(parameter["bytes"])))
    if not ready:
        raise ValueError("no gradient has a time")
    # Between backward and optimiser a rank of several waits for the others.
    update = times.get("optimizer_start_ns") or times.get("backward_end_ns")
    rest = max(0.0, float(times["step_end_ns"]) - float(update)) / 1e9
    ddp = (document.get("parallel") or {}).get("ddp") or {}
    given = None if ddp.get("bucket_cap_is_default") else ddp.get("bucket_cap_bytes")
    return Recorded(tuple(sorted(ready)), rest, int(given) if given else None)


def buckets(recorded: Recorded, strategy: str) -> tuple[list[Bucket], bool]:
    """The buckets of a strategy, and whether they are exchanged in half precision.

    ``ddp`` fills buckets in the order in which gradients are ready, to the recorded cap or
    PyTorch's
    usual ones; ``ddp:4`` to 4 MiB; ``fuse`` has one bucket; ``half`` is ``ddp`` with fp16.
    """
    name, _, cap_text = strategy.partition(":")
    if name not in ("ddp", "fuse", "half") or (name == "fuse" and cap_text):
        raise ReplayError(f"no strategy {strategy!r}: choose ddp, ddp:MIB, fuse, half or half:MIB")
    if cap_text:
        try:
            cap = int(float(cap_text) * _MIB)
        except (ValueError, OverflowError) as error:
            raise ReplayError(f"{cap_text!r} is no bucket size in MiB") from error
        if cap <= 0:
            raise ReplayError("a bucket holds more than nothing")
        caps = [cap, cap]
    elif name == "fuse":
        caps = [1 << 62, 1 << 62]
    else:
        caps = [recorded.cap or _USUAL_FIRST, recorded.cap or _USUAL_CAP]
    return _filled(recorded.gradients, caps), name == "half"


def _filled(gradients: Sequence[tuple[float, int]], caps: Sequence[int]) -> list[Bucket]:
    filled: list[Bucket] = []
    held, last = 0, 0.0
    for at, size in gradients:
        held, last = held + size, at
        if held >= caps[0 if not filled else 1]:
            filled.append(Bucket(last, held))
            held = 0
    if held:
        filled.append(Bucket(last, held))
    return filled


def expected(filled: Sequence[Bucket], exchanges: Sequence[float], rest: float) -> float:
    """Seconds of a step if exchanges take these times one after the other, each once its bucket is
    ready, and computing goes on meanwhile undisturbed."""
    end = 0.0
    for bucket, seconds in zip(filled, exchanges, strict=True):
        end = max(end, bucket.ready) + seconds
    return max(end, filled[-1].ready) + rest
