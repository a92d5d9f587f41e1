"""A small training, in processes of this machine with a core each.

    python examples/python/toy.py capture 2 DIRECTORY    # two trainings side by side, one recorded
    python examples/python/toy.py time 2                 # one training on two processes, timed

Every process trains under DDP: `capture` in a group of its own, so that the recorded step holds what
DDP does besides communicating, and what a neighbour on the machine takes away. `time` prints the
median step of rank 0 in milliseconds. measure_here.py uses both.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time

BATCH, WIDTH, CAP_MB = 256, 512, 1.0
#: Steps before those that count. A process is slower until its memory is in place.
WARM_UP, STEPS = 40, 100


def training():
    """A model under DDP, and one step of it."""
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [nn.Linear(256, WIDTH), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=CAP_MB)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, targets = torch.randn(BATCH, 256), torch.randint(0, 10, (BATCH,))

    def step() -> None:
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


def record(directory: str) -> None:
    """Records the training in this process."""
    import foretrain

    model, optimizer, step = training()
    stages = {"warmup": WARM_UP, "timed": STEPS}
    with foretrain.capture(
        directory, model=model, optimizer=optimizer, replica_batch=BATCH, **stages
    ) as it:
        while not it.idle:
            step()
            it.step()


def neighbour() -> None:
    """Trains until it is ended."""
    _, _, step = training()
    while True:
        step()


def rank() -> None:
    """Prints the median step of the first process."""
    import torch.distributed as dist

    _, _, step = training()
    times = []
    for _ in range(WARM_UP + STEPS):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    if dist.get_rank() == 0:
        print(f"{statistics.median(times[WARM_UP:]):.3f}")
    dist.destroy_process_group()


def started(
    role: list[str], core: int, port: int, rank: int = 0, world: int = 1
) -> subprocess.Popen:
    """A process of this program on a core of its own, in a group of so many."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    place |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    process = subprocess.Popen([sys.executable, __file__, *role], env={**os.environ, **place})
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, {cores[core % len(cores)]})
    return process


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def capture_beside(processes: int, directory: str) -> int:
    """Records a training while others, each in a group of its own, keep their cores busy."""
    others = [started(["neighbour"], core, free_port()) for core in range(1, processes)]
    try:
        return started(["record", directory], 0, free_port()).wait()
    finally:
        for other in others:
            other.kill()


def timed(processes: int) -> int:
    """Runs one training on so many processes."""
    port = free_port()
    ranks = [started(["rank"], at, port, at, processes) for at in range(processes)]
    return max(abs(process.wait()) for process in ranks)


def main(arguments: list[str]) -> int:
    """Does what the command line asks for."""
    match arguments:
        case ["capture", processes, directory]:
            return capture_beside(int(processes), directory)
        case ["time", processes]:
            return timed(int(processes))
        case ["record", directory]:
            record(directory)
        case ["neighbour"]:
            neighbour()
        case ["rank"]:
            rank()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
