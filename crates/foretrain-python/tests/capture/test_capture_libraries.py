"""Captures of training libraries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

Read = Callable[..., dict[str, Any]]
SHORT = {"warmup": 2, "timed": 4, "gradients": 2, "profiler_warmup": 1, "profiled": 2}
STEPS = 11


class Data(torch.utils.data.Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> dict[str, Any]:
        x = torch.full((16,), float(index % 7))
        return {"x": x, "labels": x.sum()}


class Regression(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)
        self.head = torch.nn.Linear(8, 1)

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        value = self.head(self.linear(x))[:, 0]
        return {"loss": (value - labels).square().mean(), "value": value}


def hooks(model: Any) -> int:
    return sum(len(parameter._post_accumulate_grad_hooks or {}) for parameter in model.parameters())


def test_hugging_face(tmp_path: Path, read: Read) -> None:
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    from foretrain.capture.huggingface import ForetrainCallback

    model = Regression()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=STEPS + 2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=3,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=Data(),
        eval_dataset=Data(),
        callbacks=[ForetrainCallback(tmp_path / "bundle", **SHORT)],
    )
    trainer.train()
    written = read()
    assert written["complete"] and written["notes"] == []
    assert len(written["steps"]["unprofiled"]["wall_ns"]) == 4
    waits = written["steps"]["unprofiled"]["input_wait_ns"]
    walls = written["steps"]["unprofiled"]["wall_ns"]
    assert all(0 < wait < wall for wait, wall in zip(waits, walls, strict=True))
    # Evaluating 400 samples takes longer than many steps, and is in none.
    assert max(walls) < 20 * min(walls)
    assert written["gradients"]["forwards_per_step"] == 3
    assert written["replica_batch"] == {"samples": 12, "source": "given"}
    assert written["optimizers"][0]["class"] == "AdamW"
    assert written["optimizers"][0]["state_bytes"]["exp_avg"] == (16 * 8 + 8 + 8 + 1) * 4
    assert (tmp_path / "bundle" / "rank0.trace.json.gz").exists()
    assert hooks(model) == 0


def test_lightning(tmp_path: Path, read: Read) -> None:
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")
    from foretrain.capture.lightning import ForetrainCallback

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Regression()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(**batch)["loss"]

        def validation_step(self, batch: Any, index: int) -> Any:
            return self.net(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-4, momentum=0.9)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    model = Module()
    trainer = lightning.Trainer(
        max_steps=STEPS + 2,
        accelerator="cpu",
        accumulate_grad_batches=2,
        val_check_interval=6,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ForetrainCallback(tmp_path / "bundle", **SHORT)],
    )
    loader = torch.utils.data.DataLoader(Data(), batch_size=5)
    trainer.fit(model, loader, torch.utils.data.DataLoader(Data(), batch_size=50))
    written = read()
    assert written["complete"] and written["notes"] == []
    walls = written["steps"]["unprofiled"]["wall_ns"]
    waits = written["steps"]["unprofiled"]["input_wait_ns"]
    assert len(walls) == 4
    assert all(0 < wait < wall for wait, wall in zip(waits, walls, strict=True))
    assert written["replica_batch"] == {"samples": 10, "source": "batches"}
    assert written["optimizers"][0]["state_bytes"] == {"momentum_buffer": (16 * 8 + 8 + 8 + 1) * 4}
    assert all(time is not None for time in written["gradients"]["ready_ns"])
    assert hooks(model) == 0


def test_lightning_writes_what_there_was_before_an_exception(tmp_path: Path, read: Read) -> None:
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")
    from foretrain.capture.lightning import ForetrainCallback

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Regression()

        def training_step(self, batch: Any, index: int) -> Any:
            if index == 5:
                raise ZeroDivisionError
            return self.net(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ForetrainCallback(tmp_path / "bundle", **SHORT)],
    )
    with pytest.raises(ZeroDivisionError):
        trainer.fit(Module(), torch.utils.data.DataLoader(Data(), batch_size=5))
    written = read()
    assert len(written["steps"]["unprofiled"]["wall_ns"]) == 3
    assert "ZeroDivisionError" in written["notes"][0]["message"]


@pytest.mark.parametrize("library", ["huggingface", "lightning"])
def test_mistakes_are_told_when_the_callback_is_made(tmp_path: Path, library: str) -> None:
    pytest.importorskip({"huggingface": "transformers"}.get(library, library))
    import importlib

    module = importlib.import_module(f"foretrain.capture.{library}")
    with pytest.raises(ValueError, match="timed is -3"):
        module.ForetrainCallback(tmp_path / "bundle", timed=-3)
