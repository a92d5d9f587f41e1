"""Groups of PyTorch's process groups: NCCL, RCCL (which PyTorch calls NCCL), Gloo, MPI."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .clock import DeviceClock, HostClock
from .group import Call, Clock, Group, SweepError, Unsupported

_ELEMENT = 4


class TorchGroup:
    """Some ranks of :class:`TorchWorld`; control messages go over the processor's library."""

    def __init__(self, torch: Any, device: Any, handle: Any, ranks: Sequence[int]) -> None:
        self.torch = torch
        #: Where buffers are.
        self.place = device
        self._dist = torch.distributed
        self._handle = handle
        self._ranks = list(ranks)
        self.rank = self._ranks.index(self._dist.get_rank())
        self.size = len(self._ranks)

    def barrier(self) -> None:
        """Waits for everybody, and for the device to be done."""
        if self.place.type == "cuda":
            self.torch.cuda.synchronize()
        self._dist.all_reduce(self.torch.zeros(1), group=self._handle)

    def agree(self, value: float) -> float:
        """The first rank's value."""
        tensor = self.torch.tensor([value], dtype=self.torch.float64)
        self._dist.broadcast(tensor, self._ranks[0], group=self._handle)
        return float(tensor[0])

    def greatest(self, values: Sequence[float]) -> list[float]:
        """The largest value over the ranks, place by place."""
        tensor = self.torch.tensor(list(values), dtype=self.torch.float64)
        self._dist.all_reduce(tensor, op=self._dist.ReduceOp.MAX, group=self._handle)
        return [float(value) for value in tensor]

    def operation(self, name: str, size: int) -> tuple[Call, int]:
        """See :class:`~foretrain.capture.comm.group.Group`."""
        part = max(1, size // _ELEMENT // self.size)
        whole = part * self.size
        makers: dict[str, Callable[[], Call]] = {
            "all_reduce": lambda: self._all_reduce(whole),
            "reduce_scatter": lambda: self._reduce_scatter(whole, part),
            "all_gather": lambda: self._all_gather(whole, part),
            "broadcast": lambda: self._broadcast(whole),
            "all_to_all": lambda: self._all_to_all(whole),
            "sendrecv": lambda: self._ping_pong(whole),
            "send": lambda: self._one_way(whole),
        }
        call = makers[name]()
        try:
            call()
        except (RuntimeError, NotImplementedError) as error:
            text = str(error).lower()
            if "not support" in text or "not implement" in text or "no support" in text:
                raise Unsupported(f"{name} is not there in this library: {error}") from error
            raise
        return call, whole * _ELEMENT

    def _buffer(self, elements: int) -> Any:
        # Pages that were never written to may all be one page of zeros.
        return self.torch.empty(elements, device=self.place).fill_(0.0)

    def _all_reduce(self, whole: int) -> Call:
        buffer = self._buffer(whole)
        return lambda **more: self._dist.all_reduce(buffer, group=self._handle, **more)

    def _reduce_scatter(self, whole: int, part: int) -> Call:
        given, got = self._buffer(whole), self._buffer(part)
        return lambda: self._dist.reduce_scatter_tensor(got, given, group=self._handle)

    def _all_gather(self, whole: int, part: int) -> Call:
        given, got = self._buffer(part), self._buffer(whole)
        return lambda **more: self._dist.all_gather_into_tensor(
            got, given, group=self._handle, **more
        )

    def _broadcast(self, whole: int) -> Call:
        buffer = self._buffer(whole)
        return lambda: self._dist.broadcast(buffer, self._ranks[0], group=self._handle)

    def _all_to_all(self, whole: int) -> Call:
        given, got = self._buffer(whole), self._buffer(whole)
        return lambda: self._dist.all_to_all_single(got, given, group=self._handle)

    def _ping_pong(self, whole: int) -> Call:
        buffer, other = self._buffer(whole), self._ranks[1 - self.rank]

        def call() -> None:
            if self.rank == 0:
                self._dist.send(buffer, other, group=self._handle)
                self._dist.recv(buffer, other, group=self._handle)
            else:
                self._dist.recv(buffer, other, group=self._handle)
                self._dist.send(buffer, other, group=self._handle)

        return call

    def _one_way(self, whole: int) -> Call:
        buffer, other = self._buffer(whole), self._ranks[1 - self.rank]
        if self.rank == 0:
            return lambda: self._dist.send(buffer, other, group=self._handle)
        return lambda: self._dist.recv(buffer, other, group=self._handle)


class TorchWorld(TorchGroup):
    """All ranks, from the environment that ``torchrun`` and other launchers set."""

    def __init__(self, backend: str | None, seconds: float) -> None:
        torch = import_torch()
        library = backend or default_backend(torch)
        _check(torch, library)
        self.library = library
        self._local = int(os.environ.get("LOCAL_RANK", "0"))
        device = self._pick_device(torch, library)
        # The processor's library carries control messages, so that a device's is measured alone.
        both = "mpi" if library == "mpi" else "cpu:gloo" + (",cuda:nccl" * (library == "nccl"))
        try:
            torch.distributed.init_process_group(
                both, timeout=timedelta(seconds=seconds), device_id=_device_id(device)
            )
        except (RuntimeError, ValueError) as error:
            raise SweepError(f"the ranks did not find each other: {error}") from error
        ranks = range(torch.distributed.get_world_size())
        super().__init__(torch, device, None, ranks)
        self.device = self._device_name()
        self.nodes_of = self._nodes()
        self.node = self.nodes_of[self.rank]

    def subgroup(self, ranks: Sequence[int]) -> Group | None:
        """A group of these ranks; ``None`` on ranks that are not among them."""
        handle = self._dist.new_group(list(ranks))
        if self.rank not in ranks:
            return None
        return TorchGroup(self.torch, self.place, handle, ranks)

    def clock(self) -> Clock:
        """The device's clock."""
        return DeviceClock(self.torch) if self.place.type == "cuda" else HostClock()

    def close(self) -> None:
        """Ends communication."""
        self._dist.destroy_process_group()

    def _pick_device(self, torch: Any, library: str) -> Any:
        if library != "nccl":
            return torch.device("cpu")
        if self._local >= torch.cuda.device_count():
            raise SweepError(
                f"rank {self._local} of this machine has no GPU of its own: there are "
                f"{torch.cuda.device_count()}; start as many ranks as GPUs"
            )
        torch.cuda.set_device(self._local)
        return torch.device("cuda", self._local)

    def _device_name(self) -> str:
        if self.place.type == "cuda":
            return str(self.torch.cuda.get_device_name(self.place))
        return "cpu"

    def _nodes(self) -> list[int]:
        # Launchers that emulate nodes or know better say which node a rank is on.
        own = os.environ.get("FORETRAIN_NODE") or f"{socket.gethostname()}/{_boot()}"
        names: list[Any] = [None] * self.size
        self._dist.all_gather_object(names, own)
        order: dict[str, int] = {}
        return [order.setdefault(name, len(order)) for name in names]


def import_torch() -> Any:
    """PyTorch with its distributed part, or what to do without."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        raise SweepError(
            "PyTorch cannot be imported by this Python: install it, or run the verb `foretrain "
            "capture comm` without --backend, which measures with plain processes"
        ) from error
    if not dist.is_available():
        raise SweepError("this PyTorch was built without torch.distributed")
    return torch


def default_backend(torch: Any) -> str:
    """The library that trains on the devices of this machine."""
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        return "nccl"
    return "gloo"


def _check(torch: Any, library: str) -> None:
    dist = torch.distributed
    known = {
        "nccl": dist.is_nccl_available() and torch.cuda.is_available(),
        "gloo": dist.is_gloo_available(),
        "mpi": dist.is_mpi_available(),
    }
    if library not in known:
        raise SweepError(f"no library {library!r}: choose nccl (also for RCCL), gloo or mpi")
    if known[library]:
        return
    if library == "nccl":
        raise SweepError(
            "nccl needs GPUs and a PyTorch built with it; here --backend gloo would do"
        )
    hint = "; install mpi4py to measure MPI" if library == "mpi" else ""
    raise SweepError(f"this PyTorch was built without {library}{hint}")


def _device_id(device: Any) -> Any:
    return device if device.type == "cuda" else None


def _boot() -> str:
    """Tells containers of one host name apart from machines: each boot has an id of its own."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
