"""Links between the devices of a machine, as the vendors' tools tell."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial
from typing import Any

from .notes import Notes
from .notes import describe as describe_error

_TOOLS = (
    ("nvidia-smi", ("nvidia-smi", "topo", "-m")),
    ("rocm-smi", ("rocm-smi", "--showtopo")),
)
_SECONDS = 10
_MOST_TEXT = 64 * 1024
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_LINKS = re.compile(r"^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS)$")


def describe(notes: Notes) -> dict[str, Any] | None:
    """The first tool's answer, and the links between devices where it is understood."""
    for tool, command in _TOOLS:
        if shutil.which(command[0]) is None:
            continue
        text = _run(command, notes)
        if text:
            described: dict[str, Any] = {"tool": tool, "raw": text}
            if tool == "nvidia-smi":
                links = notes.attempt("topology", partial(parse_matrix, text))
                if links:
                    described["links"] = links
            return described
    return None


def driver() -> str | None:
    """Version of NVIDIA's driver."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", file.read(4096))
            return found.group(1) if found else None
    except OSError:
        return None


def parse_matrix(text: str) -> dict[str, dict[str, str]]:
    """Links of each device to each, from the matrix of `nvidia-smi topo -m`.

    Rows that do not look like the matrix end it: a legend follows.
    """
    columns: list[str] = []
    links: dict[str, dict[str, str]] = {}
    for line in _ESCAPES.sub("", text).splitlines():
        words = line.split()
        if not columns:
            columns = [word for word in words if re.fullmatch(r"(?:GPU|NIC|mlx\w*)\d+", word)]
            continue
        if len(words) <= len(columns):
            if links:
                break
            continue
        row = dict(zip(columns, words[1 : len(columns) + 1], strict=True))
        if words[0] not in columns or not all(map(_LINKS.match, row.values())):
            break
        links[words[0]] = {to: link for to, link in row.items() if to != words[0]}
    return links


def _run(command: tuple[str, ...], notes: Notes) -> str | None:
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        notes.add("topology", f"{command[0]}: {describe_error(error)}")
        return None
    return _ESCAPES.sub("", answer.stdout[:_MOST_TEXT].decode("utf-8", "replace"))
