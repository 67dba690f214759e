"""A small model of every family that has a ready recipe: a function per family gives the module and two examples."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn

Made = tuple[nn.Module, list[Any]]


def _numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _words(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 50, shape, generator=torch.Generator().manual_seed(seed))


def _conv(inner: int, outer: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1), nn.BatchNorm2d(outer), nn.ReLU())


def _images(module: nn.Module) -> Made:
    return module.eval(), [(_numbers(1, 3, 32, 32),), (_numbers(3, 3, 32, 32, seed=1),)]


class Attention(nn.Module):
    """A block of a transformer over x [n, t, 32]."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.norm, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4).unbind(0)
        pairs = torch.stack((k, v))
        if past is not None:
            pairs = torch.cat((past, pairs), dim=3)
        mixed = F.scaled_dot_product_attention(q, pairs[0], pairs[1]).transpose(1, 2).flatten(2)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x)))), pairs


class Classifier(nn.Module):
    """Convolutions, pooling, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(3, 8, 2), _conv(8, 16, 2))
        self.head = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(image).mean((2, 3)))


class Detector(nn.Module):
    """Two heads over every place: boxes [n, places, 4] and scores [n, places, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(3, 8, 2), _conv(8, 16, 2))
        self.boxes, self.scores = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 5, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        found = self.body(image)
        return self.boxes(found).flatten(2).transpose(1, 2), self.scores(found).flatten(2).transpose(1, 2).sigmoid()


class Segmenter(nn.Module):
    """Convolutions, then the logits of six classes are enlarged to the size of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(3, 8, 2), _conv(8, 16, 2), nn.Conv2d(16, 6, 1))

    def forward(self, image: Tensor) -> Tensor:
        return F.interpolate(self.body(image), scale_factor=4.0, mode="bilinear")


class UNet(nn.Module):
    """Down once, up once, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = _conv(3, 8), _conv(8, 16, 2)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Sequential(_conv(16, 8), nn.Conv2d(8, 3, 1))

    def forward(self, image: Tensor) -> Tensor:
        fine = self.first(image)
        return self.last(torch.cat((fine, self.up(self.down(fine))), dim=1))


class VisionTransformer(nn.Module):
    """Patches, one block, logits of the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.block, self.head = nn.Conv2d(3, 32, 8, 8), Attention(), nn.Linear(32, 10)
        self.first = nn.Parameter(torch.zeros(1, 1, 32))

    def forward(self, image: Tensor) -> Tensor:
        places = self.patches(image).flatten(2).transpose(1, 2)
        x, _ = self.block(torch.cat((self.first.expand(len(image), -1, -1), places), dim=1))
        return self.head(x[:, 0])


class TextEncoder(nn.Module):
    """Tokens [n, t], one block, a vector per token."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.block, self.norm = nn.Embedding(50, 32), Attention(), nn.LayerNorm(32)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.norm(self.block(self.table(tokens))[0])


class EmbeddingModel(TextEncoder):
    """A vector of length 1 per text."""

    def forward(self, tokens: Tensor) -> Tensor:
        return F.normalize(super().forward(tokens).mean(1), dim=-1)


class SpeechEncoder(nn.Module):
    """Convolutions over a spectrum [n, 16, t], one block."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.block = nn.Conv1d(16, 32, 3, 2, 1), Attention()

    def forward(self, spectrum: Tensor) -> Tensor:
        return self.block(F.gelu(self.conv(spectrum)).transpose(1, 2))[0]


class VoiceDetector(nn.Module):
    """A piece of a signal and the state of a GRU; the probability of a voice, and the next state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gru, self.head = nn.Conv1d(1, 16, 8, 8), nn.GRUCell(16, 16), nn.Linear(16, 1)

    def forward(self, sound: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.gru(F.relu(self.conv(sound)).mean(2), state)
        return self.head(state).sigmoid(), state


class Recurrent(nn.Module):
    """An LSTM over x [n, t, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0])


class DecoderStep(nn.Module):
    """The last token [n, 1] and a cache of keys and values [2, n, heads, t, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.block, self.head = nn.Embedding(50, 32), Attention(), nn.Linear(32, 50)

    def forward(self, token: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        x, cache = self.block(self.table(token), cache)
        return self.head(x), cache


class Recommender(nn.Module):
    """Three tables, looked up by the columns of ids, beside four numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(50, 16) for _ in range(3))
        self.numbers = nn.Linear(4, 16)
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids: Tensor, numbers: Tensor) -> Tensor:
        found = [table(ids[:, at]) for at, table in enumerate(self.tables)]
        return self.head(torch.cat((*found, self.numbers(numbers)), dim=1)).sigmoid()


class Perceptron(nn.Module):
    """No family has a recipe for it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


def convolutional_classifier() -> Made:
    return _images(Classifier())


def detector() -> Made:
    return _images(Detector())


def segmenter() -> Made:
    return _images(Segmenter())


def unet() -> Made:
    return _images(UNet())


def vision_transformer() -> Made:
    return _images(VisionTransformer())


def text_encoder() -> Made:
    return TextEncoder().eval(), [(_words(1, 7),), (_words(3, 11, seed=1),)]


def embedding_model() -> Made:
    return EmbeddingModel().eval(), [(_words(1, 7),), (_words(3, 11, seed=1),)]


def speech_encoder() -> Made:
    return SpeechEncoder().eval(), [(_numbers(1, 16, 20),), (_numbers(2, 16, 28, seed=1),)]


def streaming() -> Made:
    examples = [(_numbers(n, 1, 64, seed=n), _numbers(n, 16, seed=n + 5)) for n in (1, 3)]
    return VoiceDetector().eval(), examples


def recurrent() -> Made:
    return Recurrent().eval(), [(_numbers(1, 7, 8),), (_numbers(2, 9, 8, seed=1),)]


def decoder_step() -> Made:
    return DecoderStep().eval(), [(_words(1, 1), _numbers(2, 1, 4, t, 8, seed=t)) for t in (5, 8)]


def recommender() -> Made:
    return Recommender().eval(), [(_words(n, 3, seed=n), _numbers(n, 4, seed=n)) for n in (2, 5)]


def perceptron() -> Made:
    return Perceptron().eval(), [(_numbers(2, 8),), (_numbers(3, 8, seed=1),)]
