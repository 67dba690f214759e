"""The sensitivity scan as a job of its own: told as it goes, in subgraphs too, and kept for the next job."""

from pathlib import Path

import msgspec
import pytest

from ace_studio.engine import pipeline
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import Event, JobFinished, ModelCaptured, SensitivityFound, SensitivityRequest
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import CaptureChoice, InputsChoice, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        BREAK
        return self.second(x)

def make_model():
    return Net()
"""
RECIPE = Recipe(
    model=ModelChoice(source="model.py", entry="make_model"),
    inputs=InputsChoice(rows=({"x": TensorSpec(shape=(2, 8))}, {"x": TensorSpec(shape=(4, 8))})),
)


def scan(folder: Path, recipe: Recipe = RECIPE, *, precisions: tuple[str, ...] = ()) -> list[Event]:
    events: list[Event] = []
    request = SensitivityRequest(job="scan", recipe=recipe, folder=str(folder), trust_all=True, precisions=precisions)
    pipeline.sensitivity(request, Reporter(events.append, job="scan"))
    return events


def last_found(events: list[Event]) -> SensitivityFound:
    return [event for event in events if isinstance(event, SensitivityFound)][-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL.replace("BREAK", ""), encoding="utf-8")
    return tmp_path


def test_every_product_gets_a_figure_at_every_precision_and_the_job_ends(folder: Path) -> None:
    events = scan(folder)
    found = last_found(events)
    assert found.is_complete
    assert isinstance(events[-1], JobFinished)
    assert {(one.id, one.precision) for one in found.ops} == {
        (op_id, str(precision))
        for op_id in ("linear", "linear_1")
        for precision in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
    }
    assert all(20.0 < one.sqnr_db < 80.0 for one in found.ops)


def test_the_plan_of_the_recipe_or_the_request_says_what_is_scanned(folder: Path) -> None:
    planned = msgspec.structs.replace(RECIPE, plan=Plan(default=Precision.INT8_WEIGHT))
    assert {one.precision for one in last_found(scan(folder, planned)).ops} == {"int8-weight"}
    assert {one.precision for one in last_found(scan(folder, planned, precisions=("bf16",))).ops} == {"bf16"}


def test_a_scan_that_was_made_before_is_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(folder / "cache"))
    recipe = msgspec.structs.replace(RECIPE, capture=CaptureChoice(cache=False))
    made_up = msgspec.structs.replace(
        recipe,
        inputs=InputsChoice(
            rows=tuple(
                {name: msgspec.structs.replace(spec, values="ones") for name, spec in row.items()}
                for row in RECIPE.inputs.rows
            )
        ),
    )
    first = last_found(scan(folder, made_up))
    (kept,) = (folder / "cache").glob("*.sensitivity.json")
    content = kept.read_bytes()
    assert last_found(scan(folder, made_up)).ops == first.ops
    assert kept.read_bytes() == content


def test_a_model_in_subgraphs_is_scanned_subgraph_by_subgraph_and_says_so(tmp_path: Path) -> None:
    text = MODEL.replace("BREAK", "torch._dynamo.graph_break()")
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    recipe = msgspec.structs.replace(RECIPE, capture=CaptureChoice(rungs=("partial",)))
    events = scan(tmp_path, recipe)
    found = last_found(events)
    (captured,) = (event for event in events if isinstance(event, ModelCaptured))
    assert {one.id.partition(".")[0] for one in found.ops} == {"p0", "p1"}
    assert {one.id for one in found.ops} <= set(captured.graph.op_id)
