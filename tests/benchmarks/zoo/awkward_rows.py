"""Networks that do what tracers dislike: every one is something that people write."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tests.benchmarks.zoo.row import Row, features, generator, tokens

FAMILY = "awkward"


def _block(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.LayerNorm(width))


class EarlyExit(nn.Module):
    """x [n, 3, h, w] -> scores [n, 10]; leaves the loop over stages when it is sure enough."""

    def __init__(self, width: int = 16, stages: int = 4, sure: float = 0.5) -> None:
        super().__init__()
        self.sure = sure
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
            for _ in range(stages)
        )
        self.heads = nn.ModuleList(nn.Linear(width, 10) for _ in range(stages))
        for head in self.heads:
            nn.init.normal_(head.weight, std=4.0)  # an untrained head would never be sure

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        scores = x.new_zeros(x.shape[0], 10)
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            scores = head(x.mean((2, 3)))
            if scores.softmax(-1).max() > self.sure:
                break
        return scores


class ExpertLoop(nn.Module):
    """x [n, t, 16] -> [n, t, 16]; every expert takes the tokens that the gate gives it."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.before = _block(width)
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(_block(width) for _ in range(experts))
        self.after = _block(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        chosen = self.gate(x).argmax(-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if mine.any():
                result[mine] = expert(x[mine])
        return self.after(result)


class GreedyWhile(nn.Module):
    """ids [n, t] -> ids [n, up to t + 8]; appends the likeliest token until every row has ended."""

    def __init__(self, width: int = 16, vocabulary: int = 100) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.body = nn.GRU(width, width, batch_first=True)
        self.mix = _block(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        ended = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)
        end = ids.shape[1] + 8
        while ids.shape[1] < end and not bool(ended.all()):
            hidden, _ = self.body(self.embed(ids))
            chosen = self.head(self.mix(hidden[:, -1])).argmax(-1)
            ids = torch.cat([ids, chosen[:, None]], dim=1)
            ended = ended | (chosen == 2)
        return ids


class ValueBranch(nn.Module):
    """x [n, 16] -> [n, 8]; one of two layers, by what a gate says of the first row."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)
        self.gate = nn.Linear(16, 1)
        nn.init.normal_(self.gate.weight)
        self.positive = nn.Linear(16, 8)
        self.negative = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        if self.gate(x)[0, 0] > 0:
            return self.positive(x).relu()
        return self.negative(x).tanh()


class _BodyAndHead(nn.Module):
    """A block of width 16, and a layer from 16 to 8."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)
        self.head = nn.Linear(16, 8)


class SizeFromValue(_BodyAndHead):
    """x [n, t, 16] and lengths [n] -> [n, 8]; cuts off what no row has."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        longest = int(lengths.max().item())
        return self.head(self.body(x[:, :longest]).mean(1))


class Selected(_BodyAndHead):
    """x [n, 16] -> rows of [.., 8] whose score is positive, and their positions."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(x)
        found = torch.nonzero(x.mean(1) > 0).flatten()
        return self.head(x[found]), found


class MaskedRows(_BodyAndHead):
    """x [n, 16] -> the mean of head(x) over the rows that a boolean mask takes, [8]."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        return self.head(x[x[:, 0] > -10.0]).mean(0)


class StateInAttribute(nn.Module):
    """x [n, 16] -> [n, 16]; adds the mean of the call before, kept in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)
        self.before = torch.zeros(16)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x) + self.before
        self.before = x.mean(0)
        return x


class StateInBuffer(nn.Module):
    """x [n, 16] -> [n, 16]; the same with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)
        self.register_buffer("before", torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x) + self.before
        self.before.copy_(x.mean(0))
        return x


class NestedDicts(nn.Module):
    """A batch of nested dictionaries in, a dictionary with a list out."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 8, 3, padding=1)
        self.words = nn.Embedding(100, 8)

    def forward(self, batch: dict) -> dict:
        picture = self.image(batch["image"]["pixels"]).mean((2, 3))
        words = self.words(batch["ids"]).mean(1)
        return {"score": (picture * words).sum(-1), "parts": [picture, words]}


@dataclass
class Answer:
    """What `AnswersWithDataclass` returns."""

    scores: Tensor
    hidden: Tensor


class AnswersWithDataclass(_BodyAndHead):
    """x [n, t, 16] -> a dataclass."""

    def forward(self, x: Tensor) -> Answer:
        hidden = self.body(x)
        return Answer(scores=self.head(hidden.mean(1)), hidden=hidden)


def logged(x: Tensor) -> Tensor:
    """What a logging library may do to a tracer."""
    torch._dynamo.graph_break()  # noqa: TID251 - what some libraries do
    return x * 2


class BreakInHelper(_BodyAndHead):
    """x [n, 16] -> [n, 8]; calls a function that no compiler may enter."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(logged(self.body(x)))


class ThroughNumpy(_BodyAndHead):
    """x [n, 16] -> [n, 8]; sorts with numpy in between."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        order = np.sort(hidden.detach().numpy(), axis=1)[:, ::-1].copy()
        return self.head(torch.from_numpy(order))


class ScriptedPart(nn.Module):
    """x [n, 16] -> [n, 8]; one part was compiled with TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)
        self.scripted = torch.jit.trace(_block(16).eval(), torch.zeros(2, 16))
        self.head = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.scripted(self.body(x)))


class RootOfLength(nn.Module):
    """x [n, t, 16] -> [n, t, 16]; divides by the square root of a size that Python computed."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _block(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) / math.sqrt(len(x))


class RecursiveTree(nn.Module):
    """x [n, 2^k, 16] -> [n, 16]; halves until one is left, by recursion over a size."""

    def __init__(self) -> None:
        super().__init__()
        self.join = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self._reduce(x)

    def _reduce(self, x: Tensor) -> Tensor:
        count = x.shape[1]
        if count == 1:
            return x[:, 0]
        left, right = self._reduce(x[:, : count // 2]), self._reduce(x[:, count // 2 :])
        return self.join(torch.cat([left, right], dim=-1)).tanh()


class KeyValueCache(nn.Module):
    """One step of decoding: x [n, 1, 16] and a cache of keys and values [n, t, 16] each."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x: Tensor, cache: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        query, key, value = self.project(x).chunk(3, dim=-1)
        keys, values = torch.cat([cache[0], key], dim=1), torch.cat([cache[1], value], dim=1)
        weights = (query @ keys.transpose(1, 2) / 4.0).softmax(-1)
        return self.out(weights @ values), (keys, values)


def pictures(batch: int, height: int, width: int) -> tuple[Tensor]:
    """x [batch, 3, height, width], the more in the batch the higher the contrast."""
    return (features(batch, 3, height, width)[0] * batch,)


def _cut(batch: int, length: int) -> tuple[Tensor, Tensor]:
    lengths = torch.randint(2, length + 1, (batch,), generator=generator(batch, length))
    return features(batch, length, 16)[0], lengths


def _nested(batch: int, height: int, length: int) -> tuple[dict]:
    pixels = features(batch, 3, height, 16)[0]
    return ({"image": {"pixels": pixels}, "ids": tokens(batch, length)},)


def _step(batch: int, length: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    cache = features(batch, length, 16)[0]
    return features(batch, 1, 16)[0], (cache, cache.flip(1))


def _ids(batch: int, length: int) -> tuple[Tensor]:
    return (tokens(batch, length),)


ROWS_OF_16 = (((2, 16), (3, 16)), (7, 16))
SEQUENCES = (((2, 12, 16), (3, 20, 16)), (5, 16, 16))
IMAGES = (((1, 16, 16), (3, 24, 16)), (2, 20, 16))
ROWS = (
    Row("early_exit", FAMILY, EarlyExit, pictures, *IMAGES),
    Row("expert_loop", FAMILY, ExpertLoop, features, *SEQUENCES),
    Row("greedy_while", FAMILY, GreedyWhile, _ids, ((2, 6), (3, 9)), (4, 7)),
    Row("value_branch", FAMILY, ValueBranch, features, *ROWS_OF_16),
    Row("size_from_value", FAMILY, SizeFromValue, _cut, ((2, 12), (3, 20)), (5, 16)),
    Row("selected_rows", FAMILY, Selected, features, *ROWS_OF_16),
    Row("masked_rows", FAMILY, MaskedRows, features, *ROWS_OF_16),
    Row("state_in_attribute", FAMILY, StateInAttribute, features, *ROWS_OF_16),
    Row("state_in_buffer", FAMILY, StateInBuffer, features, *ROWS_OF_16),
    Row("nested_dicts", FAMILY, NestedDicts, _nested, ((2, 16, 8), (3, 24, 12)), (4, 20, 10)),
    Row("dataclass_out", FAMILY, AnswersWithDataclass, features, *SEQUENCES),
    Row("break_in_helper", FAMILY, BreakInHelper, features, *ROWS_OF_16),
    Row("through_numpy", FAMILY, ThroughNumpy, features, *ROWS_OF_16),
    Row("scripted_part", FAMILY, ScriptedPart, features, *ROWS_OF_16),
    Row("root_of_length", FAMILY, RootOfLength, features, *SEQUENCES),
    Row("recursive_tree", FAMILY, RecursiveTree, features, ((2, 4, 16), (3, 8, 16)), (5, 2, 16)),
    Row("key_value_cache", FAMILY, KeyValueCache, _step, ((2, 6), (3, 9)), (4, 7)),
)
