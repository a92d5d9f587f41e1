"""Times of a device, by one that only pretends: its queue runs behind the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from foretrain.capture import capture
from foretrain.capture.clock import DeviceClock, device_clock
from toy import Toy

SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 11


class Device:
    """A device module whose events are passed 3 ms after each other."""

    def __init__(self) -> None:
        self.passed_ms = 0.0
        self.waits: list[int] = []
        self.steps = 0
        device = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing
                self.at: float | None = None

            def record(self) -> None:
                device.passed_ms += 3.0
                self.at = device.passed_ms

            def elapsed_time(self, end: Event) -> float:
                # As CUDA, which refuses events that the device has not passed.
                assert device.waits, "read before the device was waited for"
                assert self.at is not None and end.at is not None
                return end.at - self.at

        self.Event = Event

    def synchronize(self) -> None:
        self.waits.append(self.steps)


def record(path: Path, device: Device, restart_after: int | None = None) -> None:
    toy = Toy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foretrain.capture.recorder.device_clock", lambda _: DeviceClock(device))
        with capture(
            path / "bundle", model=toy.model, optimizer=toy.optimizer, **SHORT
        ) as recorder:
            for batch in recorder.loader(toy.batches(STEPS)):
                toy.train(batch)
                device.steps += 1
                recorder.step()
                if device.steps == restart_after:
                    recorder.restart_clock()


def test_the_device_is_waited_for_only_between_stages(
    tmp_path: Path, read: Callable[..., dict[str, Any]]
) -> None:
    device = Device()
    record(tmp_path, device)
    written = read()
    assert written["complete"] and written["notes"] == []
    timed = written["steps"]["unprofiled"]
    assert timed["device_ns"] == [3_000_000] * 4
    assert len(timed["wall_ns"]) == 4
    # After the timed steps and after those with hooks.
    assert device.waits == [6, 8]
    told = written["gradients"]
    assert told["clock"] == "device"
    # Marks come in the order: step, forward's start and end, 6 gradients, optimiser, step's end.
    assert told["forward_start_ns"] == 3_000_000 and told["forward_end_ns"] == 6_000_000
    assert sorted(told["ready_ns"]) == [9_000_000 + 3_000_000 * i for i in range(6)]
    assert told["optimizer_end_ns"] == 30_000_000


def test_what_ran_between_steps_is_in_no_device_time(
    tmp_path: Path, read: Callable[..., dict[str, Any]]
) -> None:
    record(tmp_path, Device(), restart_after=4)
    # The new start is a mark of its own, and still each step has one time.
    assert read()["steps"]["unprofiled"]["device_ns"] == [3_000_000] * 4


def test_processors_have_no_device_clock() -> None:
    assert device_clock("cpu") is None and device_clock(None) is None
    assert device_clock("no_such_device") is None
    assert device_clock("cuda") is not None
