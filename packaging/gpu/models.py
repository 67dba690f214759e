"""Networks of the kinds that GPUs run: a convolutional one, a small and a wide encoder, and a step of a decoder.

Their weights are random, from a seed: only times and fidelity to the original are measured, which need no training.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """The residual block of ResNet-50 (He et al. 2015, arXiv:1512.03385)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
        )  # fmt: skip
        is_same = stride == 1 and channels == 4 * width
        self.side = nn.Identity() if is_same else nn.Sequential(
            nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, 4 * width, H / stride, W / stride]."""
        return functional.relu(self.body(x) + self.side(x))


class Attention(nn.Module):
    """Multi-head attention with separate projections."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        """[N, L, width] -> [N, heads, L, width / heads]."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[N, L, width], and keys and values [N, heads, K, width / heads] -> [N, L, width]."""
        mixed = functional.scaled_dot_product_attention(self.split(self.query(x)), keys, values)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer of a transformer, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """[N, L, width] -> [N, L, width]; ``past`` has keys and values of earlier positions."""
        read = self.first(x)
        keys, values = (self.attention.split(layer(read)) for layer in (self.attention.key, self.attention.value))
        if past is not None:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        x = x + self.attention(read, keys, values)
        return x + self.inner(self.second(x))


class Encoder(nn.Module):
    """Token ids to one vector per text."""

    def __init__(self, *, layers: int, width: int, heads: int, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))

    def forward(self, ids: Tensor) -> Tensor:
        """[N, L] -> [N, width]."""
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        return x.mean(dim=1)


class DecoderStep(nn.Module):
    """One new token over the keys and values of those before it, to the scores of the next one."""

    def __init__(self, *, layers: int, width: int, heads: int, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[N, 1], and [layers, N, heads, L, width / heads] twice -> [N, 1, vocabulary]."""
        x = self.table(ids)
        for at, block in enumerate(self.blocks):
            x = block(x, (keys[at], values[at]))
        return self.head(x)


def convolutional() -> nn.Module:
    """ResNet-50: 25.6 million parameters."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for at in range(depth):
            layers.append(Bottleneck(channels, width, stride if at == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)).eval()


def convolutional_inputs() -> list[tuple[Tensor]]:
    """Pictures, 8 and 4 at a time."""
    return [(torch.randn(count, 3, 224, 224, generator=_seeded()),) for count in (8, 4)]


def encoder() -> nn.Module:
    """The sizes of BERT-base: 108 million parameters."""
    torch.manual_seed(0)
    return Encoder(layers=12, width=768, heads=12, vocabulary=30522).eval()


def encoder_inputs() -> list[tuple[Tensor]]:
    """Texts of 128 tokens, 8 and 4 at a time."""
    return [(torch.randint(0, 30522, (count, 128), generator=_seeded()),) for count in (8, 4)]


def wide() -> nn.Module:
    """One layer as wide as those of language models, on enough tokens for fp8 to pay: 206 million parameters."""
    torch.manual_seed(0)
    return Encoder(layers=1, width=4096, heads=32, vocabulary=1024).eval()


def wide_inputs() -> list[tuple[Tensor]]:
    """Texts of 512 tokens, 8 and 4 at a time."""
    return [(torch.randint(0, 1024, (count, 512), generator=_seeded()),) for count in (8, 4)]


def decoder() -> nn.Module:
    """A step of a decoder of 117 million parameters."""
    torch.manual_seed(0)
    return DecoderStep(layers=12, width=768, heads=12, vocabulary=32000).eval()


def decoder_inputs() -> list[tuple[Tensor, ...]]:
    """One token after 512, one text at a time."""
    past = [torch.randn(12, 1, 12, 512, 64, generator=_seeded()) for _ in range(2)]
    return [(torch.randint(0, 32000, (1, 1), generator=_seeded()), *past)]


def tiny() -> nn.Module:
    """An encoder to try the command with where there is no GPU."""
    torch.manual_seed(0)
    return Encoder(layers=1, width=32, heads=2, vocabulary=64).eval()


def tiny_inputs() -> list[tuple[Tensor]]:
    """Texts of 8 tokens."""
    return [(torch.randint(0, 64, (count, 8), generator=_seeded()),) for count in (4, 2)]


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)
