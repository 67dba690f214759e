"""Inputs and sizes from end to end: what `ace-studio trace --json` prints for models of every kind."""

import json
from pathlib import Path

import pytest

from ace_studio.cli import follow, run_command
from ace_studio.jobs.answer import ENGINE_MODULE, answer_request, load_handlers

MODEL = """
import dataclasses
import torch
from torch import nn

@dataclasses.dataclass
class Batch:
    ids: torch.Tensor
    mask: torch.Tensor

class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
    def forward(self, batch, state, *, scale=1.0):
        return (self.embed(batch.ids) * batch.mask.unsqueeze(-1)).sum(1) * scale + state[0]

class Tied(nn.Module):
    def forward(self, x, y):
        return torch.repeat_interleave(x, 2, dim=1) + y

class Patches(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 4, 4, w // 4, 4).mean((3, 5))

class Optional(nn.Module):
    def forward(self, x, mask=None):
        return x * 2 if mask is None else x * mask

class Limited(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] == 3 else x + 1

def nested():
    return [
        (Batch(torch.zeros(n, t, dtype=torch.int64), torch.ones(n, t)), [torch.ones(n, 4)]) for n, t in ((1, 5), (3, 7))
    ]
def tied():
    return [(torch.ones(1, 5, 2), torch.ones(1, 10, 2)), {"y": torch.ones(3, 14, 2), "x": torch.ones(3, 7, 2)}]
def patches():
    return [(torch.ones(1, 3, 16, 16),), (torch.ones(2, 3, 32, 24),)]
def optional():
    return [(torch.ones(1, 4),), {"x": torch.ones(3, 4), "mask": torch.ones(3, 4)}]
def one():
    return [torch.ones(1, 4)]
def limited():
    return [(torch.ones(2, 4),), (torch.ones(5, 4),)]
"""


class _ThisProcess:
    """Answers requests without a worker process, whose start would take longer than the tests."""

    def run(self, request):
        events = []
        handler = load_handlers(ENGINE_MODULE)[type(request)]
        end = answer_request(request, handler, emit=events.append, is_cancelled=lambda: False)
        return [*events, end]

    def close(self):
        pass


@pytest.fixture
def traced(tmp_path: Path, monkeypatch, capsys):
    """Trace a class of the model with the examples of a function; the engine runs in this process."""
    monkeypatch.setattr(follow, "WorkerExecutor", _ThisProcess)
    (tmp_path / "shapes_model.py").write_text(MODEL, encoding="utf-8")

    def trace(entry: str, examples: str, dims: str = "") -> dict:
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            f'format = 1\n[model]\nsource = "shapes_model.py"\nentry = "{entry}"\n'
            f'[inputs]\ntracing = "{examples}"\n[inputs.dims]\n{dims}\n'
            '[capture]\nrungs = ["export"]\ncache = false\n[targets]\nnames = ["eager"]\n',
            encoding="utf-8",
        )
        run_command(["trace", str(recipe), "--trust", "--json"])
        return json.loads(capsys.readouterr().out)

    return trace


def dims_of(document: dict) -> dict[str, dict]:
    return {f"{one['name']}.{dim['index']}": dim for one in document["capture"]["inputs"] for dim in one["dims"]}


def test_leaves_of_a_dataclass_are_named_tied_together_and_dynamic(traced):
    dims = dims_of(traced("Nested", "nested"))
    assert {name: dim["verdict"] for name, dim in dims.items()} == {
        "batch.ids.0": "dynamic",
        "batch.ids.1": "dynamic",
        "batch.mask.0": "dynamic",
        "batch.mask.1": "dynamic",
        "state.0.0": "dynamic",
        "state.0.1": "static",
    }
    assert dims["batch.mask.1"]["equal_to"] == "batch.ids.1"
    assert dims["state.0.0"]["symbol"] == dims["batch.ids.0"]["symbol"] == "s0"


def test_a_size_that_follows_from_another_is_told_with_its_range_and_mixed_calls_are_one_input(traced):
    dims = dims_of(traced("Tied", "tied"))
    assert dims["y.1"]["symbol"] == "2*s1"
    assert (dims["x.1"]["min"], dims["y.1"]["min"]) == (1, 2)
    assert "(2*x.1) == y.1" in dims["y.1"]["reason"]
    assert all(size % 2 == 0 for size in dims["y.1"]["verified_sizes"])
    assert len(dims["y.1"]["verified_sizes"]) > 2, "sizes that nobody gave were run"


def test_sizes_that_must_be_multiples_say_so_and_only_those(traced):
    dims = dims_of(traced("Patches", "patches"))
    assert "x.2 is a multiple of 4" in dims["x.2"]["reason"]
    assert "x.3 is a multiple of 4" in dims["x.3"]["reason"]
    assert "only where" not in dims["x.0"]["reason"]


@pytest.mark.parametrize(
    ("dims", "verdict", "words"),
    [
        ("", "unknown", "only ever 1"),
        ('"x.0" = "dynamic"', "dynamic", "the recipe asks for it"),
        ('"x.0" = "static"', "static", "the recipe fixes it at 1"),
    ],
)
def test_a_size_of_one_is_unknown_until_the_recipe_decides(traced, dims, verdict, words):
    found = dims_of(traced("Optional", "one", dims))["x.0"]
    assert found["verdict"] == verdict
    assert words in found["reason"]


def test_an_optional_input_that_only_one_example_gives_is_an_error_with_both_ways_out(traced):
    error = traced("Optional", "optional")["error"]
    assert error["code"] == "bad-input"
    assert "'mask' is given by example 2 and not by example 1" in error["what"]
    assert "two recipes" in error["remedy"]


def test_a_size_at_which_the_code_takes_another_path_is_named(traced):
    found = dims_of(traced("Limited", "limited"))["x.0"]
    assert "not valid at 3" in found["reason"]
    assert 3 not in found["verified_sizes"]
