"""A training that takes milliseconds."""

from __future__ import annotations

from typing import Any


class Toy:
    """A small model with batch normalisation, its optimiser and a step."""

    def __init__(self, width: int = 32, wrap: Any = None) -> None:
        import torch

        torch.manual_seed(0)
        layers = [
            torch.nn.Linear(16, width),
            torch.nn.BatchNorm1d(width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 4),
        ]
        self.model: Any = torch.nn.Sequential(*layers)
        if wrap is not None:
            self.model = wrap(self.model)
        self.optimizer: Any = torch.optim.Adam(self.model.parameters())

    def batches(self, count: int, samples: int = 8) -> list[Any]:
        """Batches of inputs."""
        import torch

        return [torch.randn(samples, 16) for _ in range(count)]

    def train(self, batch: Any) -> float:
        """One step."""
        self.optimizer.zero_grad()
        loss = self.model(batch).square().mean()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def hooks(self) -> int:
        """Hooks that are attached to model, parameters and optimiser."""
        count = len(self.optimizer._optimizer_step_pre_hooks)
        count += len(self.optimizer._optimizer_step_post_hooks)
        for module in self.model.modules():
            count += len(module._forward_hooks) + len(module._forward_pre_hooks)
        for parameter in self.model.parameters():
            count += len(parameter._post_accumulate_grad_hooks or {})
        return count
