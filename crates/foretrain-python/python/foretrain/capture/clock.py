"""Time on a device, without waiting for it.

Events are put into the device's queue and read later: a wait per step would take away the very
overlap between host and device that is to be measured.
"""

from __future__ import annotations

import itertools
from typing import Any


class DeviceClock:
    """Marks in the queue of a device."""

    def __init__(self, module: Any) -> None:
        """`module` is `torch.cuda` or another device module with timing events."""
        self._module = module

    def mark(self) -> Any:
        """An event that the device passes once it has done what was launched until now."""
        event = self._module.Event(enable_timing=True)
        event.record()
        return event

    def settle(self) -> None:
        """Waits until the device has passed all marks."""
        self._module.synchronize()

    def between(self, start: Any, end: Any) -> int:
        """Nanoseconds from one mark to another; both must have been passed."""
        return max(0, round(float(start.elapsed_time(end)) * 1e6))

    def durations(self, marks: list[Any]) -> list[int]:
        """Nanoseconds between neighbours."""
        return [self.between(start, end) for start, end in itertools.pairwise(marks)]


def device_clock(device_type: str | None) -> DeviceClock | None:
    """The clock of a device type; none for the CPU and devices without timing events."""
    if device_type is None or device_type in ("cpu", "meta"):
        return None
    import torch

    module = getattr(torch, device_type, None)
    return DeviceClock(module) if hasattr(module, "Event") else None


def device_type_of(model: Any) -> str | None:
    """The device that the model computes on, as `cuda` or `cpu`."""
    import torch

    if model is not None:
        for parameter in model.parameters():
            if parameter.device.type != "meta":
                return str(parameter.device.type)
    in_use = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return "cuda" if in_use else None
