"""Three small models of different kinds, with an optimiser and a batch each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: Names of the models.
NAMES = ("cnn", "transformer", "recommender")


@dataclass
class Training:
    """A model and one step of its training."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    loss: Callable[[Tensor], Tensor]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]


class Cnn(nn.Module):
    """Convolutions with batch normalisation, wider as the image shrinks."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 160)) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage, width in enumerate(widths):
            for repeat in range(2):
                stride = 2 if stage and not repeat else 1
                layers += [
                    nn.Conv2d(channels, width, 3, stride, 1, bias=False),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                ]
                channels = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of ten classes."""
        return self.head(self.body(images).mean((2, 3)))


class Block(nn.Module):
    """Attention and a perceptron, each on normalised input and added to it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as the input: batch, position, width."""
        batch, length, width = x.shape
        parts = self.queries_keys_values(self.before_attention(x))
        parts = parts.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.before_perceptron(x))


class Transformer(nn.Module):
    """A language model."""

    def __init__(
        self, words: int = 384, length: int = 64, width: int = 160, blocks: int = 3
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(blocks)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, words, bias=False))

    def forward(self, text: Tensor) -> Tensor:
        """Scores of the next word at every position."""
        return self.head(self.blocks(self.words(text) + self.places[: text.shape[1]]))


class Recommender(nn.Module):
    """Embeddings of categories, their products, and a perceptron; gradients are dense."""

    rows = (6000, 3000, 2000, 1000, 500, 250)

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, width, mode="mean") for rows in self.rows]
        )
        self.numbers = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width))
        count = len(self.rows) + 1
        pairs = count * (count - 1) // 2
        self.top = nn.Sequential(
            nn.Linear(pairs + width, 384),
            nn.ReLU(),
            nn.Linear(384, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )
        self.register_buffer("pairs", torch.triu_indices(count, count, 1))

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        """One score per row."""
        dense = self.numbers(numbers)
        looked_up = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([dense, *looked_up], 1)
        products = stacked @ stacked.transpose(1, 2)
        first, second = self.pairs
        return self.top(torch.cat([dense, products[:, first, second]], 1))


def training(name: str, seed: int) -> Training:
    """The training of a model of this name. Ranks give seeds of their own for their batches."""
    torch.manual_seed(0)
    if name == "cnn":
        model: nn.Module = Cnn()
        torch.manual_seed(seed)
        classes = torch.randint(0, 10, (8,))
        return Training(
            model,
            (torch.randn(8, 3, 32, 32),),
            lambda scores: F.cross_entropy(scores, classes),
            lambda m: torch.optim.SGD(m.parameters(), lr=1e-3, momentum=0.9),
        )
    if name == "transformer":
        model = Transformer()
        torch.manual_seed(seed)
        words = torch.randint(0, 384, (6, 64))
        return Training(
            model,
            (torch.randint(0, 384, (6, 64)),),
            lambda scores: F.cross_entropy(scores.flatten(0, 1), words.flatten()),
            lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4),
        )
    if name == "recommender":
        model = Recommender()
        torch.manual_seed(seed)
        batch = 1024
        clicks = torch.rand(batch, 1)
        categories = torch.stack(
            [torch.randint(0, rows, (batch, 8)) for rows in Recommender.rows], 1
        )
        return Training(
            model,
            (torch.randn(batch, 13), categories),
            lambda scores: F.binary_cross_entropy_with_logits(scores, clicks),
            lambda m: torch.optim.Adagrad(m.parameters(), lr=1e-2),
        )
    raise ValueError(f"no model {name!r}: choose among {', '.join(NAMES)}")
