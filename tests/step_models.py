"""One step of a small decoder with an explicit cache, random weights under a fixed seed."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn


class DecoderLayer(nn.Module):
    """x [b, 1, width], keys and values [b, heads, t, size] -> x, keys and values of t + 1."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, _, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, 1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        mixed = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, 1, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)))), keys, values


class StepDecoder(nn.Module):
    """token [b, 1], position [b, 1], cache (one pair per layer) -> scores [b, 1, vocabulary], longer cache."""

    def __init__(self, *, vocabulary: int, width: int, heads: int, layers: int, longest: int = 512) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(
        self, token: Tensor, position: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        x = self.words(token) + self.places(position)
        grown = []
        for layer, held in zip(self.layers, cache, strict=True):
            x, *longer = layer(x, *held)
            grown.append(tuple(longer))
        return self.head(self.norm(x)), grown


def step_decoder(
    *, vocabulary: int = 61, width: int = 64, heads: int = 4, layers: int = 2, lengths: tuple[int, ...] = (4, 9)
) -> tuple[StepDecoder, list[dict[str, Any]]]:
    """The module and one example per length of the cache."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = StepDecoder(vocabulary=vocabulary, width=width, heads=heads, layers=layers).eval()
        examples = [
            {
                "token": torch.randint(0, vocabulary, (1, 1)),
                "position": torch.tensor([[length]]),
                "cache": [
                    (torch.randn(1, heads, length, width // heads), torch.randn(1, heads, length, width // heads))
                    for _ in range(layers)
                ],
            }
            for length in lengths
        ]
    return module, examples
