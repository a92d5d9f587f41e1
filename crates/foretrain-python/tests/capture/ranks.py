"""What the processes of the distributed tests do. They import it, so it is no test module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 11


def spawn(function: Callable[..., None], bundle: Path, ranks: int = 2) -> None:
    """Runs `function(rank, bundle)` in processes with a process group."""
    import torch.multiprocessing as mp

    store = bundle.parent / "store"
    paths = [path for path in sys.path if path]
    mp.spawn(_rank, (function, str(store), ranks, bundle, paths), nprocs=ranks)


def _rank(
    rank: int,
    function: Callable[..., None],
    store: str,
    ranks: int,
    bundle: Path,
    paths: list[str],
) -> None:
    sys.path[:0] = [path for path in paths if path not in sys.path]
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        function(rank, bundle)
    finally:
        dist.destroy_process_group()


def _record(bundle: Path, toy: Any, steps: int = STEPS, **options: Any) -> None:
    from foretrain.capture import capture

    with capture(bundle, model=toy.model, optimizer=toy.optimizer, **SHORT | options) as recorder:
        for batch in recorder.loader(toy.batches(steps)):
            toy.train(batch)
            recorder.step()


def ddp(rank: int, bundle: Path) -> None:
    """DDP with several buckets."""
    from torch.nn.parallel import DistributedDataParallel
    from toy import Toy

    # 4 KiB: each layer fills a bucket of its own.
    _record(bundle, Toy(512, lambda m: DistributedDataParallel(m, bucket_cap_mb=1 / 256)))


def ddp_views(rank: int, bundle: Path) -> None:
    """DDP with settings that all differ from the defaults, and a frozen parameter."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    from torch.nn.parallel import DistributedDataParallel
    from toy import Toy

    def wrap(model: Any) -> Any:
        model[0].weight.requires_grad = False
        wrapped = DistributedDataParallel(
            model, gradient_as_bucket_view=True, broadcast_buffers=False, static_graph=True
        )
        wrapped.register_comm_hook(None, fp16_compress_hook)
        return wrapped

    _record(bundle, Toy(32, wrap))


def ddp_accumulating(rank: int, bundle: Path) -> None:
    """Three micro-batches per step, of which the last one is synchronised."""
    from foretrain.capture import capture
    from torch.nn.parallel import DistributedDataParallel
    from toy import Toy

    toy = Toy(32, DistributedDataParallel)
    with capture(bundle, model=toy.model, optimizer=toy.optimizer, **SHORT) as recorder:
        for _ in range(STEPS):
            first, second, last = toy.batches(3)
            with toy.model.no_sync():
                for batch in (first, second):
                    toy.model(batch).mean().backward()
            toy.model(last).mean().backward()
            toy.optimizer.step()
            recorder.step()


def ddp_inside(rank: int, bundle: Path) -> None:
    """The model inside DDP is given instead of the DDP module."""
    from torch.nn.parallel import DistributedDataParallel
    from toy import Toy

    toy = Toy(32, DistributedDataParallel)
    inner, outer = toy.model.module, toy.model

    class Inside:
        model = inner
        optimizer = toy.optimizer
        batches = staticmethod(toy.batches)
        train = staticmethod(toy.train)

    assert outer is toy.model
    _record(bundle, Inside())


def alone(rank: int, bundle: Path) -> None:
    """Processes that never synchronise."""
    from toy import Toy

    _record(bundle, Toy(32))


def hugging_face(rank: int, bundle: Path) -> None:
    """The trainer wraps its model in DDP and does not tell the callback."""
    import os

    import torch
    import transformers
    from foretrain.capture.huggingface import ForetrainCallback

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(16, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": (self.linear(x)[:, 0] - labels).square().mean()}

    # What a launcher sets.
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost")
    os.environ["MASTER_PORT"] = "29501"
    arguments = transformers.TrainingArguments(
        output_dir=str(bundle.parent / "out"),
        max_steps=STEPS + 1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        ddp_backend="gloo",
        # Otherwise DDP never rebuilds its buckets, and does not tell what is in them.
        ddp_find_unused_parameters=False,
        disable_tqdm=True,
    )
    data = [{"x": torch.ones(16), "labels": torch.tensor(3.0)}] * 400
    transformers.Trainer(
        model=Net(),
        args=arguments,
        train_dataset=data,
        callbacks=[ForetrainCallback(bundle, **SHORT)],
    ).train()


def fsdp2(rank: int, bundle: Path) -> None:
    """FSDP2 with two units."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from toy import Toy

    mesh = init_device_mesh("cpu", (2,))

    def wrap(model: Any) -> Any:
        fully_shard(model[0], mesh=mesh)
        return fully_shard(model, mesh=mesh)

    _record(bundle, Toy(32, wrap))


def fsdp1(rank: int, bundle: Path) -> None:
    """FSDP1 with two units, whose parameters stay views of flat ones."""
    _fsdp1(bundle, True)


def fsdp1_flat(rank: int, bundle: Path) -> None:
    """The same, of whose parameters only the flat ones are left."""
    _fsdp1(bundle, False)


def _fsdp1(bundle: Path, views: bool) -> None:
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from toy import Toy

    options: Any = {
        "device_id": torch.device("cpu"),
        "use_orig_params": views,
        "mixed_precision": MixedPrecision(reduce_dtype=torch.float64),
    }

    def wrap(model: Any) -> Any:
        model[3] = FullyShardedDataParallel(model[3], **options)
        return FullyShardedDataParallel(model, **options)

    _record(bundle, Toy(32, wrap))


def one_fails(rank: int, bundle: Path) -> None:
    """The profiler of rank 1 fails; both train on together."""
    from torch.nn.parallel import DistributedDataParallel
    from toy import Toy

    if rank == 1:
        from torch import profiler

        def fail(self: Any) -> None:
            raise RuntimeError("no profiler today")

        profiler.profile.start = fail
    _record(bundle, Toy(32, DistributedDataParallel), steps=STEPS + 5)
