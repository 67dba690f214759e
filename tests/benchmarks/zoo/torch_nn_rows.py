"""Layers and small networks of torch.nn itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn

from tests.benchmarks.zoo.row import Row, features, generator, tokens

FAMILY = "torch.nn"


class LastStep(nn.Module):
    """x [n, t, 16] -> scores [n, 5] from the last state of a recurrent layer."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        sequence, _ = self.layer(x)
        return self.head(sequence[:, -1])


class StepByStep(nn.Module):
    """x [n, t, 16] -> [n, t, 16]: a cell in a Python loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[0], 16)
        found = []
        for step in x.unbind(1):
            state = self.cell(step, state)
            found.append(state)
        return torch.stack(found, dim=1)


class Packed(nn.Module):
    """x [n, t, 16] and lengths [n] -> [n, t, 5]: it tags sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.layer = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.before(x), lengths, batch_first=True, enforce_sorted=False)
        sequence, _ = self.layer(packed)
        return self.head(nn.utils.rnn.pad_packed_sequence(sequence, batch_first=True, total_length=x.shape[1])[0])


class TextRecognizer(nn.Module):
    """x [n, 1, 16, w] -> [n, w / 4, 20]: convolutions, then a recurrent layer along the line of text."""

    def __init__(self) -> None:
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.read = nn.LSTM(64, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 20)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2] != 16:
            raise ValueError("a line of text must be 16 high")
        columns = self.see(x).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.read(columns)[0])


class SpeechEncoder(nn.Module):
    """x [n, t, 16] -> [n, 8]: a recurrent layer, and attention that pools over time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(16, 24, 2, batch_first=True)
        self.score = nn.Linear(24, 1)
        self.head = nn.Linear(24, 8)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 3:
            raise ValueError("too short")
        sequence, _ = self.layer(x)
        return self.head((self.score(sequence).softmax(1) * sequence).sum(1))


class Bags(nn.Module):
    """ids [n, t] -> scores [n, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(100, 16, mode="mean")
        self.head = nn.Linear(16, 5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.bag(ids))


class SelfAttention(nn.Module):
    """x [n, t, 16] -> [n, t, 16]."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0]


class UNet3d(nn.Module):
    """x [n, 1, d, h, w] -> [n, 2, d, h, w], sizes a multiple of 2."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1), nn.InstanceNorm3d(16), nn.ReLU())
        self.up = nn.ConvTranspose3d(16, 8, 2, stride=2)
        self.head = nn.Conv3d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.down(x)
        return self.head(torch.cat([fine, self.up(self.deep(fine))], dim=1))


class Upsampler(nn.Module):
    """x [n, 8, h, w] -> [n, 3, 4h, 4w]."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.PixelShuffle(2), nn.GroupNorm(2, 8), nn.PReLU())
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(self.head(self.body(x)), scale_factor=2.0, mode="bilinear", align_corners=False)


def _packed(batch: int, length: int) -> tuple[Tensor, Tensor]:
    lengths = torch.randint(1, length + 1, (batch,), generator=generator(batch, length))
    return features(batch, length, 16)[0], lengths


def _two_sequences(batch: int, length: int) -> tuple[Tensor, Tensor]:
    return features(batch, length, 16)[0], features(batch, length // 2, 16)[0]


def _transformer() -> nn.Module:
    return nn.Transformer(16, 2, 2, 2, dim_feedforward=32, batch_first=True)


def _encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True), 2)


def _decoder() -> nn.Module:
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, dim_feedforward=32, batch_first=True), 2)


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1))


def _wave() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv1d(1, 8, 3, padding=1)]
    for step in (1, 2, 4):
        layers += [nn.Conv1d(8, 8, 3, padding=step, dilation=step), nn.BatchNorm1d(8), nn.SiLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 5))


SEQUENCES = (((2, 12, 16), (3, 20, 16)), (5, 16, 16))
ROWS = (
    Row("mlp", FAMILY, _mlp, features, ((2, 16), (3, 16)), (7, 16)),
    Row("lstm", FAMILY, lambda: LastStep(nn.LSTM(16, 24, 2, batch_first=True), 24), features, *SEQUENCES),
    Row("gru_both_ways", FAMILY, lambda: LastStep(nn.GRU(16, 24, batch_first=True, bidirectional=True), 48),
        features, *SEQUENCES),
    Row("rnn_step_by_step", FAMILY, StepByStep, features, *SEQUENCES),
    Row("lstm_packed", FAMILY, Packed, _packed, ((2, 12), (3, 20)), (5, 16)),
    Row("text_recognizer", FAMILY, TextRecognizer, features, ((2, 1, 16, 32), (3, 1, 16, 48)), (4, 1, 16, 40)),
    Row("speech_encoder", FAMILY, SpeechEncoder, features, *SEQUENCES),
    Row("transformer", FAMILY, _transformer, _two_sequences, ((2, 12), (3, 20)), (5, 16)),
    Row("transformer_encoder", FAMILY, _encoder, features, *SEQUENCES),
    Row("transformer_decoder", FAMILY, _decoder, _two_sequences, ((2, 12), (3, 20)), (5, 16)),
    Row("multihead_attention", FAMILY, SelfAttention, features, *SEQUENCES),
    Row("embedding_bag", FAMILY, Bags, lambda *sizes: (tokens(*sizes),), ((2, 12), (3, 20)), (5, 16)),
    Row("wave_1d", FAMILY, _wave, features, ((2, 1, 64), (3, 1, 96)), (5, 1, 80)),
    Row("unet_3d", FAMILY, UNet3d, features, ((1, 1, 8, 8, 8), (2, 1, 12, 8, 16)), (3, 1, 16, 8, 12)),
    Row("upsampler", FAMILY, Upsampler, features, ((1, 8, 8, 8), (2, 8, 12, 16)), (3, 8, 16, 10)),
)  # fmt: skip
