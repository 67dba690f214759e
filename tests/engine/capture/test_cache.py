"""Captures are found again, proven again, and dropped if they do not hold."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from ace_studio.engine.capture import capture_model
from ace_studio.engine.capture.cache_store import CaptureStore
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import AttemptEnded
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.results import CaptureReport
from tests import tiny_models
from tests.engine.capture.captures import KeptCaptures

torch.set_num_threads(1)
EXPORT = Recipe(capture=CaptureChoice(rungs=("export",)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    made = tmp_path / "captures"
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(made))
    return made


@pytest.fixture(scope="module")
def one_entry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("one") / "captures"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACE_STUDIO_CACHE", str(made))
        capture(Scaled(), X)
    return made


@pytest.fixture
def scaled(folder: Path, one_entry: Path) -> Path:
    """A cache with the capture of `Scaled` on `X`."""
    return Path(shutil.copytree(one_entry, folder))


def capture(
    module: nn.Module, examples: list[Any], recipe: Recipe = EXPORT, *, sha256: str = "a file", source: Path = Path()
) -> tuple[CapturedModel, CaptureReport, list[Any]]:
    events: list[Any] = []
    captured, report = capture_model(
        LoadedModel(module=module, source=source, sha256=sha256),
        [Example.of(example) for example in examples],
        recipe,
        device=torch.device("cpu"),
        reporter=Reporter(events.append),
    )
    return captured, report, events


def shapes(captured: CapturedModel) -> list[list[tuple[int, ...]]]:
    return [[tuple(tensor.shape) for tensor in one.tensors()] for one in (captured.example, *captured.examples)]


CASES = [(name,) for name in tiny_models.EASY] + [
    ("reads_value", "export-strict"), ("square_root_of_length", "export-strict"), ("recurrent", "dynamo"),
    ("text_model", "dynamo"), ("mlp", "fx"), ("recurrent", "fx"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_capture_found_again_is_the_same_in_all_that_others_read(kept: KeptCaptures, case: tuple[str, ...]) -> None:
    events: list[Any] = []
    first, told = kept.of(*case)
    again, told_again = kept.again(*case, reporter=Reporter(events.append))
    assert (told.cached, told_again.cached) == (False, True)
    assert not any(isinstance(event, AttemptEnded) for event in events)
    assert again.table == first.table and again.inputs == first.inputs and again.fingerprint == first.fingerprint
    assert shapes(again) == shapes(first) and len(again.unseen) == len(first.unseen)
    assert told_again.rungs == told.rungs and told_again.warnings == told.warnings
    assert again.program.graph_module.code == first.program.graph_module.code
    for one, other in zip(first.program.graph.nodes, again.program.graph.nodes, strict=True):
        for key in ("stack_trace", "nn_module_stack"):
            assert (one.meta.get(key) or None) == (other.meta.get(key) or None)
        # Several results are a list in one and a tuple in the other.
        assert str(pytree.tree_leaves(one.meta.get("val"))) == str(pytree.tree_leaves(other.meta.get("val")))
    graph = again.program.module()
    with torch.no_grad():
        for example in again.unseen:
            assert not difference(example.copied().call(again.module), example.copied().call(graph))


def test_the_program_found_again_computes_with_the_weights_of_the_live_module(folder: Path) -> None:
    examples = [(torch.rand(2, 3),), (torch.rand(4, 3),)]
    capture(nn.Linear(3, 2), examples)
    module = nn.Linear(3, 2)  # a factory without a seed: other numbers in the same model
    captured, report, _ = capture(module, examples)
    assert report.cached
    assert captured.program.state_dict["weight"] is module.weight
    with torch.no_grad():
        assert not difference(module(examples[0][0]), captured.program.module()(examples[0][0]))


class Halved(nn.Linear):
    """Its weight is computed in forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight * 0.5, self.bias)


def test_computed_weights_are_stored_and_other_weights_make_them_stale(folder: Path) -> None:
    examples = [(torch.rand(2, 3),), (torch.rand(4, 3),)]
    module = Halved(3, 2).eval()
    assert [capture(module, examples)[1].cached for _ in range(2)] == [False, True]
    with torch.no_grad():
        module.weight.mul_(1.0001)  # less than the tolerance of the comparison with eager
    captured, report, _ = capture(module, examples)
    assert not report.cached
    assert torch.equal(captured.program.state_dict["weight_computed"], module.weight * 0.5)


class Scaled(nn.Module):
    def __init__(self, scale: float = 2.0, hidden: int = 4) -> None:
        super().__init__()
        self.scale = scale
        self.linear = nn.Linear(3, hidden)
        self.table = torch.arange(3.0)  # a plain attribute, which becomes a constant of the graph

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x + self.table) * self.scale


X = [(torch.rand(2, 3),), (torch.rand(5, 3),)]


@pytest.mark.parametrize(
    ("change", "is_found"),
    [
        ({}, True),
        ({"examples": [(torch.rand(2, 3),), (torch.rand(5, 3),)]}, True),
        ({"examples": [(torch.rand(2, 3),), (torch.rand(6, 3),)]}, False),
        ({"module": Scaled(scale=3.0)}, False),
        ({"module": Scaled(hidden=5)}, False),
        ({"sha256": "another file"}, False),
        ({"recipe": Recipe(capture=CaptureChoice(rungs=("export-strict",)))}, False),
        ({"recipe": Recipe(capture=CaptureChoice(rungs=("export",), cache=False))}, False),
        ({"sha256": ""}, False),
    ],
    ids=["the same", "numbers", "a size", "an attribute", "a layer", "the file", "a rung", "switched off", "no file"],
)
def test_what_makes_a_capture_another_one(scaled: Path, change: dict[str, Any], is_found: bool) -> None:
    asked = {"module": Scaled(), "examples": X, **change}
    assert capture(**asked)[1].cached is is_found


def test_a_plain_tensor_that_changed_is_another_model(scaled: Path) -> None:
    changed = Scaled()
    changed.table += 1
    assert not capture(changed, X)[1].cached


class Choosy(nn.Module):
    """Reads a number while it is built into the graph, which no structure shows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * float(os.environ["ACE_TEST_FACTOR"])


def test_what_does_not_equal_eager_any_more_is_dropped_and_traced_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACE_TEST_FACTOR", "2")
    capture(Choosy(), X)
    monkeypatch.setenv("ACE_TEST_FACTOR", "3")
    captured, report, _ = capture(Choosy(), X)
    assert not report.cached
    assert torch.equal(captured.program.module()(X[0][0]), X[0][0] * 3)
    assert capture(Choosy(), X)[1].cached  # the new one is kept in its place


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nonsense", b"half"])
def test_a_damaged_entry_is_dropped_and_traced_anew(scaled: Path, damage: bytes) -> None:
    (entry,) = scaled.iterdir()
    entry.write_bytes(entry.read_bytes()[:400] if damage == b"half" else damage)
    assert not capture(Scaled(), X)[1].cached
    assert capture(Scaled(), X)[1].cached


def test_an_entry_of_another_model_under_our_name_is_refused(scaled: Path) -> None:
    (own,) = scaled.iterdir()
    capture(nn.Linear(3, 3), X)
    (foreign,) = [path for path in scaled.iterdir() if path != own]
    own.write_bytes(foreign.read_bytes())
    assert not capture(Scaled(), X)[1].cached


def test_code_in_the_place_of_an_expression_is_never_evaluated(
    scaled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch would evaluate it: a file that was not signed with this user's key is not read at all."""
    (entry,) = scaled.iterdir()
    own = CaptureStore.of_user()
    assert own is not None
    parts = own.read(entry.stem)
    assert parts is not None
    trap = tmp_path / "trap"
    graph = parts["graph"].replace(b"Symbol(", f"__import__('os').mkdir({str(trap)!r}) or Symbol(".encode())
    assert graph != parts["graph"]
    CaptureStore(scaled, b"the key of somebody else").write(entry.stem, {**parts, "graph": graph})
    assert not capture(Scaled(), X)[1].cached
    assert not trap.exists()
    own.write(entry.stem, {**parts, "graph": graph})
    capture(Scaled(), X)
    assert trap.exists(), "else the payload proves nothing"


# --- helper modules ---


def test_a_helper_that_forward_imports_late_and_that_changed_is_a_miss(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = tmp_path / "ace_test_model.py"
    helper = tmp_path / "ace_test_helper.py"
    source.write_text(
        textwrap.dedent(
            """
            from torch import nn

            class Late(nn.Module):
                def forward(self, x):
                    import ace_test_helper
                    return ace_test_helper.change(x)
            """
        )
    )
    helper.write_text("def change(x):\n    return x + 1\n")

    def run() -> CaptureReport:
        for name in ("ace_test_model", "ace_test_helper"):
            sys.modules.pop(name, None)
        import importlib

        importlib.invalidate_caches()
        module = importlib.import_module("ace_test_model").Late()
        return capture(module, X, source=source)[1]

    try:
        assert [run().cached, run().cached] == [False, True]
        helper.write_text("def change(x):\n    return x + 1.0\n")  # equal results, other code
        assert not run().cached
    finally:
        for name in ("ace_test_model", "ace_test_helper"):
            sys.modules.pop(name, None)


class Counts(nn.Module):
    """Adds what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.sum(0))
        return x + self.seen


def test_a_capture_found_again_knows_what_forward_changes_and_its_first_values(folder: Path) -> None:
    for _ in range(2):
        captured, report, _events = capture(Counts().eval(), [(torch.randn(2, 4),), (torch.randn(3, 4),)])
        assert list(captured.first_state) == ["seen"] and torch.equal(captured.first_state["seen"], torch.ones(4))
    assert report.cached
