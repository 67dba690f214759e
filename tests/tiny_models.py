"""Tiny models of every awkward kind, with examples: one factory function each, random weights under a fixed seed.

A `TinyModel` has the module in eval mode and the examples as a user would write them (tuple = args, dict = kwargs).
`EASY` and `DYNAMIC` group the ones that capture well; the rest is named for what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn


@dataclass(frozen=True)
class TinyModel:
    """A module in eval mode and its examples."""

    module: nn.Module
    examples: list[Any]


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _tokens(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 50, shape, generator=torch.Generator().manual_seed(seed))


def _made(make: Callable[[], nn.Module], *examples: Any) -> TinyModel:
    """Make the module under a fixed seed, without disturbing the seed of the caller."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = make()
    return TinyModel(module.eval(), list(examples))


# --- well-behaved ---


class ConvNet(nn.Module):
    """x [n, 3, 16, 16] -> scores [n, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.ModuleList(ConvBlock(8) for _ in range(2))
        self.head = nn.Linear(8, 10)
        for norm in [self.stem[1], *(block.norm for block in self.blocks)]:
            nn.init.uniform_(norm.running_mean, -0.5, 0.5)
            nn.init.uniform_(norm.running_var, 0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class ConvBlock(nn.Module):
    """A residual block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.relu(self.norm(self.conv(x)))


def conv_net() -> TinyModel:
    """Convolutions and batch norms; the batch is dynamic, one example has batch 1."""
    return _made(ConvNet, (_random(1, 3, 16, 16),), (_random(4, 3, 16, 16, seed=1),))


def conv_net_any_size() -> TinyModel:
    """The same, with dynamic batch, height and width."""
    return _made(ConvNet, (_random(1, 3, 16, 16),), (_random(2, 3, 24, 20, seed=1),))


def mlp() -> TinyModel:
    """Two linear layers; x [n, 16] -> [n, 4]."""
    make = lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))  # noqa: E731
    return _made(make, (_random(2, 16),), (_random(5, 16, seed=1),))


class Attention(nn.Module):
    """Self attention with a padding mask, x [n, t, 16]."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.project = nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        n, t, width = x.shape
        q, k, v = (part.reshape(n, t, 2, 8).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :].bool())
        return self.project(y.transpose(1, 2).reshape(n, t, width))


class TextModel(nn.Module):
    """Takes keyword arguments and a nested dictionary; gives a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.attention = Attention()
        self.norm = nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, batch: dict[str, Tensor], scale: float = 1.0) -> dict[str, Tensor]:
        x = self.embed(batch["input_ids"])
        x = x + self.attention(x, batch["attention_mask"])
        x = x + self.down(F.gelu(self.up(self.norm(x)))) * scale
        return {"last": x, "pooled": x.mean(1)}


def text_model() -> TinyModel:
    """Attention over nested keyword inputs; batch and length are dynamic in two inputs that change together."""

    def row(n: int, t: int, seed: int) -> dict[str, Any]:
        mask = torch.ones(n, t, dtype=torch.int64)
        mask[:, t - 1 :] = int(t == 1)
        return {"batch": {"input_ids": _tokens(n, t, seed=seed), "attention_mask": mask}}

    return _made(TextModel, row(1, 7, 0), row(3, 12, 1))


class StatefulCell(nn.Module):
    """x [n, 8], state [2, n, 16] -> y [n, 1], new state: the batch is dim 0 of one input and dim 1 of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        h, c = self.cell(x, (state[0], state[1]))
        return torch.sigmoid(self.head(h)), torch.stack((h, c))


def lstm_cell() -> TinyModel:
    """State in, state out."""
    return _made(
        StatefulCell, (_random(1, 8), torch.zeros(2, 1, 16)), (_random(4, 8, seed=1), _random(2, 4, 16, seed=2))
    )


class Recurrent(nn.Module):
    """A two-layer LSTM over x [n, t, 8], and a GRU in both directions behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True)
        self.gru = nn.GRU(16, 4, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.lstm(x)
        return self.gru(y)[0], h


def recurrent() -> TinyModel:
    """Recurrent layers with a dynamic batch and a dynamic number of steps."""
    return _made(Recurrent, (_random(1, 7, 8),), (_random(2, 9, 8, seed=1),))


class ManyOutputs(nn.Module):
    """Gives a tuple of a tensor, a dictionary with a list, and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, *, weight: Tensor) -> tuple[Tensor, dict[str, Any], int]:
        low, high = self.linear(x).chunk(2, dim=-1)
        return low * weight, {"high": high, "both": [low.sum(-1), high.amax(-1)]}, 3


def many_outputs() -> TinyModel:
    """A keyword-only input and nested outputs."""
    return _made(
        ManyOutputs,
        {"x": _random(2, 8), "weight": _random(1, seed=3)},
        {"x": _random(3, 8, seed=1), "weight": _random(1, seed=4)},
    )


class Shared(nn.Module):
    """Calls one submodule twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.tanh(self.layer(x)))


def shared_layer() -> TinyModel:
    """One linear layer called twice."""
    return _made(Shared, (_random(2, 8),), (_random(3, 8, seed=1),))


# --- awkward: capturable, but not by the first idea ---


class SizeSpecialised(nn.Module):
    """Works at any width, but its code asks for one width in particular."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == 3:
            return self.linear(x).sum(1)
        return self.linear(x).mean(1)


def size_specialised() -> TinyModel:
    """A branch on ``x.shape[1] == 3``, with examples on both sides of it."""
    return _made(SizeSpecialised, (_random(2, 3, 4),), (_random(2, 5, 4, seed=1),))


class SquareRootOfLength(nn.Module):
    """Scales by the square root of a size, through ``math``."""

    def forward(self, x: Tensor) -> Tensor:
        import math

        return x / math.sqrt(len(x))


def square_root_of_length() -> TinyModel:
    """``math.sqrt(len(x))``: non-strict export cannot, strict can."""
    return _made(SquareRootOfLength, (_random(2, 4),), (_random(3, 4, seed=1),))


class Stateful(nn.Module):
    """Counts its calls in a plain attribute, and adds the count."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.linear(x) + self.calls


def stateful() -> TinyModel:
    """A plain attribute that changes with every call: a graph freezes it without a word."""
    return _made(Stateful, (_random(2, 4),), (_random(3, 4, seed=1),))


class Noisy(nn.Module):
    """Adds noise in eval mode."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.rand_like(x)


def noisy() -> TinyModel:
    """A random op that stays in the graph; equal under one seed, different from call to call."""
    return _made(Noisy, (_random(2, 4),), (_random(3, 4, seed=1),))


class DropoutLeftOn(nn.Module):
    """Calls the functional dropout without telling it about eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.linear(x), p=0.5)


def dropout_left_on() -> TinyModel:
    """``F.dropout(x)`` drops in eval mode too."""
    return _made(DropoutLeftOn, (_random(2, 4),), (_random(3, 4, seed=1),))


class MutatesInput(nn.Module):
    """Writes into its own input."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2)
        return x + 1


def mutates_input() -> TinyModel:
    """forward changes the tensor it was given."""
    return _made(MutatesInput, (_random(2, 4),), (_random(3, 4, seed=1),))


# --- broken: each must end in a message with a cause and a remedy ---


class Gate(nn.Module):
    """Chooses a branch by a tensor's value."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if x.mean() > 0:
            return self.left(x)
        return self.right(x)


class Gated(nn.Module):
    """A gate inside a container, so that the message has a module to name."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), Gate()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def data_dependent() -> TinyModel:
    """``if x.mean() > 0`` in ``blocks.1``."""
    return _made(Gated, (_random(2, 4),), (_random(3, 4, seed=1),))


class Raises(nn.Module):
    """Has a typo: ``x.size[0]``."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.size[0], -1)


def raises() -> TinyModel:
    """forward raises a TypeError of the user's own making."""
    return _made(Raises, (_random(2, 4),))


def wrong_shape() -> TinyModel:
    """A good network with an example of the wrong width."""
    return TinyModel(mlp().module, [(_random(2, 16),), (_random(2, 15),)])


class ReadsValue(nn.Module):
    """Takes a number out of a tensor and uses it as a size."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        return x[: int(n.item())].sum(0)


def reads_value() -> TinyModel:
    """``n.item()`` as a size."""
    return _made(ReadsValue, (_random(4, 4), torch.tensor(2)), (_random(6, 4, seed=1), torch.tensor(3)))


EASY: dict[str, Callable[[], TinyModel]] = {
    "conv_net": conv_net,
    "conv_net_any_size": conv_net_any_size,
    "mlp": mlp,
    "text_model": text_model,
    "lstm_cell": lstm_cell,
    "recurrent": recurrent,
    "many_outputs": many_outputs,
    "shared_layer": shared_layer,
}
"""Every model that must be captured by the first rung, with all its dynamic dimensions proven."""
