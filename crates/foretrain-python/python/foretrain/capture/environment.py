"""Devices, versions and settings of a training process."""

from __future__ import annotations

from typing import Any

from . import topology
from .machine import describe_machine, resident_peak_bytes
from .notes import Notes
from .ranks import Place
from .variables import relevant_variables


def describe_environment(
    place: Place, device_type: str | None, hostname: str, notes: Notes
) -> dict[str, Any]:
    """All that a forecast may want to know of where the capture was made."""
    described: dict[str, Any] = {
        "machine": notes.attempt("machine", lambda: describe_machine(hostname)),
        "versions": versions(notes),
        "devices": notes.attempt("devices", lambda: devices(device_type)),
        "threads": notes.attempt("threads", threads),
        "distributed": notes.attempt("distributed", distributed),
        "variables": notes.attempt("variables", relevant_variables),
    }
    # Ranks of one machine see the same links, and asking takes seconds: the first is enough.
    if not place.local_rank and device_type not in (None, "cpu"):
        described["topology"] = topology.describe(notes)
    return {name: value for name, value in described.items() if value is not None}


def versions(notes: Notes) -> dict[str, str]:
    """Versions of PyTorch and of the libraries below it."""
    import torch

    found: dict[str, Any] = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
    }
    if torch.cuda.is_available():
        # Each library may be absent or refuse, and the others' versions are still worth having.
        found["cudnn"] = notes.attempt("versions", torch.backends.cudnn.version)
        found["nccl"] = notes.attempt("versions", nccl_version)
        found["driver"] = topology.driver()
    return {name: str(value) for name, value in found.items() if value is not None}


def nccl_version() -> str:
    """NCCL's version, or RCCL's."""
    import torch

    version = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version)


def devices(device_type: str | None) -> dict[str, Any]:
    """Devices that this process sees and the one that it uses."""
    import torch

    if device_type in (None, "cpu"):
        return {"type": "cpu", "count": 0, "names": []}
    module = getattr(torch, str(device_type))
    count = int(module.device_count())
    described: dict[str, Any] = {
        "type": device_type,
        "count": count,
        "names": [str(module.get_device_name(index)) for index in range(count)],
        "used": int(module.current_device()),
    }
    if hasattr(module, "get_device_properties"):
        properties = module.get_device_properties(described["used"])
        described["memory_bytes"] = int(properties.total_memory)
        if hasattr(properties, "multi_processor_count"):
            described["multiprocessors"] = int(properties.multi_processor_count)
    return described


def threads() -> dict[str, int]:
    """Threads that PyTorch computes with on the CPU."""
    import torch

    return {
        "intra_op": int(torch.get_num_threads()),
        "inter_op": int(torch.get_num_interop_threads()),
    }


def distributed() -> dict[str, Any]:
    """The default process group's backend and size."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return {"initialized": False}
    return {
        "initialized": True,
        "backend": str(dist.get_backend()),
        "world_size": int(dist.get_world_size()),
    }


def memory(device_type: str | None) -> dict[str, int]:
    """Peaks of memory since the process started. The peaks are read and not reset: they may be
    somebody else's measurement too."""
    peaks: dict[str, int] = {}
    resident = resident_peak_bytes()
    if resident is not None:
        peaks["resident_peak_bytes"] = resident
    if device_type in (None, "cpu"):
        return peaks
    import torch

    module = getattr(torch, str(device_type))
    for name, function in (
        ("allocated_peak_bytes", "max_memory_allocated"),
        ("reserved_peak_bytes", "max_memory_reserved"),
    ):
        if hasattr(module, function):
            peaks[name] = int(getattr(module, function)())
    return peaks
