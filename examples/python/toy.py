"""A small training, alone or on several processes of this machine.

    python examples/python/toy.py capture DIRECTORY      # one process, recorded
    python examples/python/toy.py time 2                 # two processes under DDP, timed

The second prints the median step of rank 0 in milliseconds. measure_here.py uses both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

BATCH, WIDTH, STEPS = 32, 512, 40


def training():
    """A model and one step of it; under DDP if there are several processes."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [nn.Linear(256, WIDTH), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
    if torch.distributed.is_initialized():
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
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
    with foretrain.capture(directory, model=model, optimizer=optimizer, replica_batch=BATCH) as it:
        while not it.idle:
            step()
            it.step()


def rank() -> None:
    """One process of several: prints the median step of the first."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    _, _, step = training()
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    if dist.get_rank() == 0:
        print(f"{statistics.median(times[10:]):.3f}")
    dist.destroy_process_group()


def timed(processes: int) -> None:
    """Starts the processes, one core each where there are enough."""
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29741"}
    common["WORLD_SIZE"] = str(processes)
    started = [
        subprocess.Popen([sys.executable, __file__, "rank"], env={**common, "RANK": str(at)})
        for at in range(processes)
    ]
    if any(process.wait() for process in started):
        raise SystemExit("a process failed")


if __name__ == "__main__":
    if sys.argv[1] == "capture":
        record(sys.argv[2])
    elif sys.argv[1] == "time":
        timed(int(sys.argv[2]))
    else:
        rank()
