"""Doing tasks: here or on Ray, each once."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .._errors import ForetrainError, UsageError

Backend = Literal["ray", "local"]

# A worker that dies takes its tasks with it; so often each is given to another one.
_RETRIES = 8


class TaskError(ForetrainError):
    """A task failed: what it was, and why."""


class Task:
    """What to do, and a key that tells it from all others: of everything its result depends on."""

    def __init__(self, work: Callable[..., bytes], arguments: tuple[Any, ...], name: str) -> None:
        self.work = work
        self.arguments = arguments
        self.name = name

    def key(self) -> str:
        """The same for the same work on the same files by the same version."""
        from .. import _native

        parts = [_native.__version__, self.work.__qualname__, _described(self.arguments)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def run(
    tasks: Sequence[Task], directory: str | os.PathLike[str] | None, backend: Backend
) -> list[bytes]:
    """The results of all tasks, in their order.

    Raises the first failure after everything else has been done and kept.
    """
    if directory is not None:
        _refuse_functions(tasks)
    kept = None if directory is None else _Kept(Path(directory))
    results: dict[int, bytes] = {}
    if kept is not None:
        for at, task in enumerate(tasks):
            found = kept.get(task)
            if found is not None:
                results[at] = found
    left = [at for at in range(len(tasks)) if at not in results]
    failed: list[tuple[int, Exception]] = []
    for at, result in _done(backend)([tasks[at] for at in left]):
        index = left[at]
        if isinstance(result, Exception):
            failed.append((index, result))
            continue
        results[index] = result
        if kept is not None:
            kept.put(tasks[index], result)
    if failed:
        index, error = min(failed, key=lambda one: one[0])
        others = f" ({len(failed) - 1} more failed)" if len(failed) > 1 else ""
        hints = error.hints if isinstance(error, ForetrainError) else []
        raise TaskError(f"{tasks[index].name}: {_message(error)}{others}", hints) from error
    return [results[at] for at in range(len(tasks))]


def _refuse_functions(tasks: Sequence[Task]) -> None:
    """A kept result does not tell what a function of that name did then."""
    plugins = sys.modules.get("foretrain.plugins")
    named = sorted(getattr(plugins, "_registered", ()))
    for task in tasks:
        words = set(re.findall(r"[\w-]+", _described(task.arguments)))
        for name in named:
            if name in words:
                raise UsageError(
                    f"{task.name}: results that depend on {name!r}, a function of your own, are not kept",
                    ["leave directory= out"],
                )


def _message(error: Exception) -> str:
    return (
        error.message if isinstance(error, ForetrainError) else f"{type(error).__name__}: {error}"
    )


_Results = Iterable[tuple[int, "bytes | Exception"]]


def _done(backend: Backend) -> Callable[[list[Task]], _Results]:
    if backend == "local":
        return _local
    if backend == "ray":
        return _on_ray
    raise ForetrainError(f"backend={backend!r}: expected 'ray' or 'local'")


def _local(tasks: list[Task]) -> _Results:
    for at, task in enumerate(tasks):
        try:
            yield at, task.work(*task.arguments)
        except Exception as error:  # every other task still runs
            yield at, error


def _on_ray(tasks: list[Task]) -> _Results:
    if not tasks:
        return
    try:
        import ray
    except ImportError as error:
        raise ForetrainError(
            "Ray is not installed",
            ["pip install 'foretrain[ray]', or backend='local' for the same results here"],
        ) from error
    from .. import _native

    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    remote = ray.remote(max_retries=_RETRIES)(_remote)
    waiting = {
        remote.remote(task.work, task.arguments, _native.__version__): at
        for at, task in enumerate(tasks)
    }
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1)
        for reference in done:
            at = waiting.pop(reference)
            try:
                yield at, ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                yield at, error.cause if isinstance(error.cause, Exception) else error
            except ray.exceptions.RayError as error:
                yield at, error


def _remote(work: Callable[..., bytes], arguments: tuple[Any, ...], version: str) -> bytes:
    from .. import _native

    if _native.__version__ != version:
        raise ForetrainError(
            f"a worker has Foretrain {_native.__version__}, this program {version}",
            ["install one version on all machines: results must not depend on who does the work"],
        )
    return work(*arguments)


class _Kept:
    """Results in a directory, one file per task."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def _path(self, task: Task) -> Path:
        return self.directory / f"{task.key()}.result"

    def get(self, task: Task) -> bytes | None:
        try:
            whole = self._path(task).read_bytes()
        except FileNotFoundError:
            return None
        # A machine that lost power may leave a file of zeros.
        digest, _, result = whole.partition(b"\n")
        return result if digest == _digest(result) else None

    def put(self, task: Task, result: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self.directory, prefix=".partial-")
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(result) + b"\n" + result)
        os.replace(name, self._path(task))


def _digest(result: bytes) -> bytes:
    return hashlib.sha256(result).hexdigest().encode()


def _described(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """Values of other libraries whole; their representation may leave out the middle."""
    if isinstance(value, (set, frozenset, range)):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def signatures(*values: Any) -> list[Any]:
    """The signatures of all files that are named anywhere in these values."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, Mapping):
            found += signatures(*value.values())
        elif isinstance(value, (str, os.PathLike)):
            name = os.fspath(value)
            # Most words name no file, and some are too long for a name.
            with contextlib.suppress(OSError, ValueError):
                if name and (os.path.exists(name) or glob.has_magic(name)):
                    found.append(signature(name))
        elif isinstance(value, (list, tuple)):
            found += signatures(*value)
    return found


def signature(path: str | os.PathLike[str]) -> list[Any]:
    """What tells a file (or the files below a directory) from what it was before."""
    if not os.path.exists(path) and glob.has_magic(os.fspath(path)):
        return [signature(one) for one in sorted(glob.glob(os.fspath(path), recursive=True))]
    path = Path(path)
    if path.is_dir():
        inner = sorted(one for one in path.rglob("*") if one.is_file())
        return [[str(one), *_stamp(one)] for one in inner]
    return [str(path), *_stamp(path)]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return (found.st_size, found.st_mtime_ns)
