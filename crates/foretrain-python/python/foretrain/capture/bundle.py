"""The directory that a capture is written to: names, refusals and atomic writes."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

_HOST = re.compile(rb'("host_name":\s*)"(?:[^"\\]|\\.)*"')


class CaptureError(RuntimeError):
    """A capture was asked for in a way that cannot be right; nothing was recorded."""


class Bundle:
    """The files of one rank in a directory that ranks may share."""

    def __init__(self, directory: Path, rank: int, host: str | None = None) -> None:
        """`host` stands in traces in place of the machine's name; None leaves that there."""
        self.directory = directory
        self.rank = rank
        self.host = host

    @property
    def capture(self) -> Path:
        """What the recorder measured."""
        return self.directory / f"rank{self.rank}.capture.json"

    @property
    def trace(self) -> Path:
        """The profiler's trace."""
        return self.directory / f"rank{self.rank}.trace.json.gz"

    @property
    def execution(self) -> Path:
        """The execution trace."""
        return self.directory / f"rank{self.rank}.execution.json.gz"

    def prepare(self, overwrite: bool) -> None:
        """Makes the directory and sees that it can be written to.

        Raises CaptureError if this rank has been captured there before and `overwrite` is false,
        and OSError if the directory cannot be written to.
        """
        self.refuse_second(overwrite)
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".probe-", dir=self.directory)
        os.close(handle)
        os.unlink(name)
        # Files of two captures must not stand beside each other, so the old ones go first.
        for path in (self.capture, self.trace, self.execution):
            path.unlink(missing_ok=True)

    def refuse_second(self, overwrite: bool) -> None:
        """Raises CaptureError if files of this rank exist and must be kept."""
        if overwrite:
            return
        for path in (self.capture, self.trace, self.execution):
            if path.exists():
                raise CaptureError(
                    f"{path} exists: rank {self.rank} has been captured there before; "
                    "name another directory, or pass overwrite=True to replace that capture"
                )

    def write_capture(self, document: dict[str, Any]) -> None:
        """Writes the capture file, whole or not at all."""
        with replacing(self.capture) as file:
            file.write(_lines(document).encode() + b"\n")

    def pack(self, plain: Path, packed: Path, renamed: Mapping[str, str] | None = None) -> None:
        """Packs a JSON file and removes the plain one.

        The profiler writes the names of its file and of the machine into it. The path says where
        somebody keeps their files, so it is shortened to the packed file's name. ``renamed`` are
        events by their names.
        """
        names = {
            json.dumps(old).encode(): json.dumps(new).encode()
            for old, new in (renamed or {}).items()
        }
        path = json.dumps(str(plain)).encode()[1:-1]
        name = packed.name.encode()
        try:
            with (
                open(plain, "rb") as source,
                replacing(packed) as target,
                gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=5) as packing,
            ):
                for line in source:
                    if path in line:
                        line = line.replace(path, name)
                    if self.host is not None and b'"host_name"' in line:
                        line = _HOST.sub(b'\\1"' + self.host.encode() + b'"', line)
                    for old, new in names.items():
                        if old in line:
                            line = line.replace(old, new)
                    packing.write(line)
        finally:
            plain.unlink(missing_ok=True)

    def scratch(self, ending: str) -> Path:
        """A name for a file of this process that readers of the directory pass over."""
        return self.directory / f".rank{self.rank}.{os.getpid()}.{ending}"


def _lines(document: dict[str, Any], depth: int = 0) -> str:
    """JSON that people can read: one line per value near the top, and one per parameter."""
    compact = json.JSONEncoder(allow_nan=False).encode
    indent = " " * (depth + 1)
    members = []
    for key, value in document.items():
        if isinstance(value, dict) and value and depth < 2:
            text = _lines(value, depth + 1)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            items = f",\n{indent} ".join(map(compact, value))
            text = f"[\n{indent} {items}\n{indent}]"
        else:
            text = compact(value)
        members.append(f"{indent}{compact(key)}: {text}")
    inside = ",\n".join(members)
    return f"{{\n{inside}\n{' ' * depth}}}"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is complete, and never in part."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read; others analyse bundles too.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
