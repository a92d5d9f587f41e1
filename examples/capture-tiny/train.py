"""Trains a small model by DDP and captures it.

torchrun --nproc-per-node 2 train.py bundle
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from foretrain.capture import capture

WIDTH, SAMPLES, STEPS = 1024, 64, 40


def main(bundle: str) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)]
    # The last layer alone fills a bucket of 32 KiB.
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=1 / 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.utils.data.TensorDataset(
        torch.randn(STEPS * SAMPLES, WIDTH), torch.randint(10, (STEPS * SAMPLES,))
    )
    loader = torch.utils.data.DataLoader(data, batch_size=SAMPLES)
    with capture(bundle, model=model, optimizer=optimizer) as recorder:
        for images, labels in recorder.loader(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            recorder.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
