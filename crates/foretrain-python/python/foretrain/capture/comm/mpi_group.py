"""Groups of MPI through mpi4py, for where PyTorch was built without MPI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .clock import HostClock
from .group import Call, Clock, Group, SweepError

_ELEMENT = 4


class MpiGroup:
    """Some ranks of an MPI job."""

    def __init__(self, mpi: Any, communicator: Any) -> None:
        self._mpi = mpi
        self._comm = communicator
        self.rank = int(communicator.Get_rank())
        self.size = int(communicator.Get_size())

    def barrier(self) -> None:
        """Waits for everybody."""
        self._comm.Barrier()

    def agree(self, value: float) -> float:
        """The first rank's value."""
        return float(self._comm.bcast(value, root=0))

    def greatest(self, values: Sequence[float]) -> list[float]:
        """The largest value over the ranks, place by place."""
        gathered = self._comm.allgather(list(values))
        return [max(column) for column in zip(*gathered, strict=True)]

    def operation(self, name: str, size: int) -> tuple[Call, int]:
        """See :class:`~foretrain.capture.comm.group.Group`."""
        part = max(1, size // _ELEMENT // self.size)
        whole = part * self.size
        given, got = _buffer(whole), _buffer(whole)
        own = memoryview(got)[: part * _ELEMENT]
        mpi, comm, other = self._mpi, self._comm, 1 - self.rank

        def typed(buffer: Any) -> list[Any]:
            return [buffer, mpi.FLOAT]

        def ping_pong() -> None:
            if self.rank == 0:
                comm.Send(typed(given), dest=other)
                comm.Recv(typed(got), source=other)
            else:
                comm.Recv(typed(got), source=other)
                comm.Send(typed(given), dest=other)

        def one_way() -> None:
            if self.rank == 0:
                comm.Send(typed(given), dest=other)
            else:
                comm.Recv(typed(got), source=other)

        calls: dict[str, Callable[[], None]] = {
            "all_reduce": lambda: comm.Allreduce(typed(given), typed(got)),
            "reduce_scatter": lambda: comm.Reduce_scatter_block(typed(given), typed(own)),
            "all_gather": lambda: comm.Allgather(typed(own), typed(given)),
            "broadcast": lambda: comm.Bcast(typed(given), root=0),
            "all_to_all": lambda: comm.Alltoall(typed(given), typed(got)),
            "sendrecv": ping_pong,
            "send": one_way,
        }
        return calls[name], whole * _ELEMENT


class MpiWorld(MpiGroup):
    """All ranks of the MPI job that this process belongs to."""

    library = "mpi"
    device = "cpu"

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise SweepError(
                "--backend mpi needs a PyTorch built with MPI, or mpi4py; neither can be imported"
            ) from error
        super().__init__(MPI, MPI.COMM_WORLD)
        names = self._comm.allgather(MPI.Get_processor_name())
        order: dict[str, int] = {}
        self.nodes_of = [order.setdefault(name, len(order)) for name in names]
        self.node = self.nodes_of[self.rank]

    def subgroup(self, ranks: Sequence[int]) -> Group | None:
        """A group of these ranks; ``None`` on ranks that are not among them."""
        member = self.rank in ranks
        communicator = self._comm.Split(0 if member else self._mpi.UNDEFINED, self.rank)
        return MpiGroup(self._mpi, communicator) if member else None

    def clock(self) -> Clock:
        """The processor's clock."""
        return HostClock()

    def close(self) -> None:
        """MPI ends with the process."""


def _buffer(elements: int) -> Any:
    # Written once, so that its pages are its own.
    return bytearray(b"\0" * (elements * _ELEMENT))
