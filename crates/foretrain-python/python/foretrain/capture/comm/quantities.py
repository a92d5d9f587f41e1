"""Sizes, times and rates as people write them, and quantiles of what was measured."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

_T = TypeVar("_T")

_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1024,
    "kib": 1024,
    "kb": 1000,
    "m": 1024**2,
    "mib": 1024**2,
    "mb": 1000**2,
    "g": 1024**3,
    "gib": 1024**3,
    "gb": 1000**3,
}
_TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0}
_RATE_UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z/]*)\s*\Z")


def _quantity(text: str, units: dict[str, float] | dict[str, int], what: str, like: str) -> float:
    found = _NUMBER.match(text)
    unit = found.group(2).lower() if found else ""
    unit = unit.removesuffix("/s") if unit.endswith("bit/s") else unit
    if not found or unit not in units:
        raise ValueError(f"{text!r} is no {what}; write it like {like}")
    value = float(found.group(1)) * units[unit]
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is too large for a {what}")
    return value


def checked(parser: Callable[[str], _T]) -> Callable[[str], _T]:
    """Hands the parser's own message on, where argparse would only name the function."""

    def parse_one(text: str) -> _T:
        try:
            return parser(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse_one


def parse_count(text: str, most: int, what: str) -> int:
    """A whole number from 1 to ``most``."""
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise ValueError(f"{text!r} is no {what} from 1 to {most}")
    return int(text)


def parse_bytes(text: str) -> int:
    """Bytes of ``64K``, ``1MiB`` or ``1000``: K, M and G count in 1024s, KB, MB and GB in 1000s."""
    return int(_quantity(text, _SIZE_UNITS, "size", "64K, 1MiB or 4096"))


def parse_seconds(text: str) -> float:
    """Seconds of ``90s``, ``2min`` or ``500ms``; a bare number counts seconds."""
    seconds = _quantity(text, _TIME_UNITS, "time", "90s, 2min or 500ms")
    if seconds <= 0.0:
        raise ValueError(f"{text!r} is no time above zero")
    return seconds


def parse_rate(text: str) -> float:
    """Bits per second of ``200mbit`` or ``1gbit``."""
    rate = _quantity(text, _RATE_UNITS, "rate", "200mbit or 1gbit")
    if rate < 1e4:
        raise ValueError(f"{text!r} is slower than 10kbit, on which nothing trains")
    return rate


def parse_sizes(text: str) -> list[int]:
    """Sizes of ``1K,1M`` or ``1K..64M``; a range goes up by fours and ends with its last size."""
    sizes: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low = parse_bytes(first)
        high = parse_bytes(last) if dots else low
        if low < 4:
            raise ValueError(f"{part!r}: the smallest size is an element, of 4 bytes")
        if high < low:
            raise ValueError(f"{part!r} is no range of sizes: it goes up")
        size = low
        while size < high:
            sizes.add(size)
            size *= 4
        sizes.add(high)
    return sorted(sizes)


def size_text(size: int) -> str:
    """A size for people: ``64 KiB``."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024.0:
            break
        value, unit = value / 1024.0, larger
    return f"{value:g} {unit}" if value >= 100 or value == int(value) else f"{value:.3g} {unit}"


def quantile(values: Iterable[float], part: float) -> float:
    """The quantile at ``part`` (0 to 1), linear between neighbours; NaN of nothing."""
    ordered: Sequence[float] = sorted(values)
    if not ordered:
        return math.nan
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values: Iterable[float]) -> float:
    """The median; NaN of nothing."""
    return quantile(values, 0.5)
