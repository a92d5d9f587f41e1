"""From stages and surroundings to the document that a capture file holds."""

from __future__ import annotations

import threading
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .bundle import Bundle, CaptureError
from .clock import device_type_of
from .environment import describe_environment, memory
from .gradients import GradientStage
from .model import describe_model, describe_optimizers
from .notes import Notes
from .parallel import describe_parallel
from .profiling import ExecutionStage, ProfileStage
from .ranks import Place, place
from .stages import Stage

if TYPE_CHECKING:
    from .recorder import Subject

FORMAT = 1
"""Version of the capture file's format."""

_running: tuple[object, Path] | None = None
_lock = threading.Lock()


def claim(recorder: object, directory: Path) -> None:
    """Makes `recorder` the process's only one: hooks and profiler of two would measure each other.

    Raises CaptureError if another runs.
    """
    global _running
    with _lock:
        if _running is not None:
            raise CaptureError(
                f"a capture into {_running[1]} is running in this process; "
                f"end it before another into {directory}"
            )
        _running = (recorder, directory)


def disclaim(recorder: object) -> None:
    """Lets other captures run."""
    global _running
    with _lock:
        if _running is not None and _running[0] is recorder:
            _running = None


def gather(subject: Subject, notes: Notes) -> dict[str, Any]:
    """What is known of model, optimiser, layout, memory and environment."""
    model = subject.model
    device = notes.attempt("devices", lambda: device_type_of(model))
    gathered: dict[str, Any] = {
        "memory": notes.attempt("memory", lambda: memory(device)),
        "optimizers": notes.attempt("optimizer", lambda: describe_optimizers(subject.optimizers)),
        "parallel": describe_parallel(model, notes),
        "environment": describe_environment(place(), device, subject.hostname, notes),
    }
    if model is not None:
        gathered["model"] = notes.attempt("model", lambda: describe_model(model))
    return {name: value for name, value in gathered.items() if value}


def document(
    subject: Subject,
    place: Place,
    bundle: Bundle,
    stages: list[Stage],
    gathered: dict[str, Any],
    notes: Notes,
) -> dict[str, Any]:
    """The capture file's document."""
    by_name = {stage.name: stage for stage in stages}
    names = {"warmup": "warmup", "timed": "unprofiled", "gradients": "hooked"}
    names |= {"profile": "profiled", "execution": "execution"}
    written: dict[str, Any] = {
        "foretrain_capture": FORMAT,
        "rank": place.rank,
        "world_size": place.world_size,
        "local_rank": place.local_rank,
        "rank_source": place.source,
        "schedule": subject.schedule.as_dict(),
        "complete": all(stage.done >= stage.count for stage in stages),
        "missing": _missing(stages),
        "steps": {names[name]: stage.steps.as_dict() for name, stage in by_name.items()},
    }
    batch = _replica_batch(subject, by_name.get("timed"))
    if batch is not None:
        written["replica_batch"] = batch
    hooked = by_name.get("gradients")
    if isinstance(hooked, GradientStage):
        summary = notes.attempt("gradients", hooked.summary)
        if summary:
            written["gradients"] = summary
    written |= gathered
    written["files"] = _files(by_name, bundle)
    written["notes"] = notes.as_list()
    return written


def move(bundle: Bundle, rank: int, overwrite: bool) -> Bundle:
    """The files under another rank's names."""
    moved = Bundle(bundle.directory, rank, bundle.host)
    moved.refuse_second(overwrite)
    for old, new in ((bundle.trace, moved.trace), (bundle.execution, moved.execution)):
        if old.exists():
            old.replace(new)
    return moved


def _missing(stages: list[Stage]) -> list[str]:
    """Stages that ran short, in words."""
    return [
        f"{stage.name}: {stage.done} of {stage.count} steps"
        for stage in stages
        if stage.done < stage.count
    ]


def _replica_batch(subject: Subject, timed: Stage | None) -> dict[str, Any] | None:
    if subject.replica_batch is not None:
        return {"samples": subject.replica_batch, "source": "given"}
    if timed is not None and timed.steps.samples:
        # The last batch of an epoch may be smaller.
        return {"samples": median(timed.steps.samples), "source": "batches"}
    return None


def _files(by_name: dict[str, Stage], bundle: Bundle) -> dict[str, str]:
    files = {}
    profile, execution = by_name.get("profile"), by_name.get("execution")
    if isinstance(profile, ProfileStage) and profile.written:
        files["trace"] = bundle.trace.name
    if isinstance(execution, ExecutionStage) and execution.written:
        files["execution"] = bundle.execution.name
    return files
