"""Models in subgraphs on every target: built, compressed, run, read back, saved, and loaded by the file beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import BoundPlan, Example, PartialModel
from ace_studio.engine.measure import Timer, wall_clock_ms
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import LoweringJob, Target
from ace_studio.engine.targets.partial import lower as subgraphs
from ace_studio.engine.targets.partial.lower import lower_subgraphs
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from tests.engine.capture.captures import capture_by

torch.set_num_threads(1)
NAMES = ("eager", "onnxruntime", "openvino", pytest.param("inductor", marks=[pytest.mark.heavy, pytest.mark.full]))


class Gated(nn.Module):
    """Two runs of layers with a branch by a value between them, wide enough to be worth a runtime."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
        self.head = nn.Linear(32, 7)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        if x.mean() > 0:
            x = self.body(x)
        return self.head(torch.relu(x).mean((2, 3)))


EXAMPLES = [torch.randn(2, 3, 32, 24), torch.randn(3, 3, 24, 32)]


@pytest.fixture(scope="module")
def partial() -> PartialModel:
    torch.manual_seed(0)
    captured, _ = capture_by("partial", Gated().eval(), EXAMPLES)
    assert isinstance(captured, PartialModel)
    return captured


@pytest.fixture(autouse=True)
def every_subgraph_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not decide which subgraphs are tested."""
    monkeypatch.setattr("ace_studio.engine.targets.partial.lower.SLOWER", 1e9)


def job_of(partial: PartialModel, target: Target, folder: Path, plan: Plan) -> LoweringJob:
    return LoweringJob(
        captured=partial.subgraphs[0].captured,
        plan=bind_plan(plan, partial.table, op_problem=target.op_problem),
        calibration=lambda: [Example((one,)) for one in EXAMPLES],
        threads=1,
        device=torch.device("cpu"),
        folder=folder,
    )


def lower(partial: PartialModel, name: str, folder: Path, *, plan: Plan | None = None) -> Any:
    target = TARGETS[name]
    if not target.available().ok:
        pytest.skip(target.available().reason)
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        return lower_subgraphs(target, partial, job_of(partial, target, folder, plan or Plan()))


@pytest.fixture(scope="module")
def built(partial: PartialModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The model as a target builds it, made once for all tests."""

    @cache
    def build(name: str, plan: Plan = Plan()) -> Any:  # noqa: B008 - it is frozen
        return lower(partial, name, tmp_path_factory.mktemp(name), plan=plan)

    return build


@pytest.mark.parametrize("name", NAMES)
def test_the_built_model_equals_eager_on_examples_and_unseen_sizes(
    partial: PartialModel, name: str, built: Callable[..., Any]
) -> None:
    lowered = built(name)
    assert partial.unseen
    with torch.no_grad():
        for example in partial.examples:
            assert not difference(example.copied().call(partial.module), example.copied().call(lowered))


@pytest.mark.parametrize("name", NAMES)
def test_every_op_of_every_subgraph_says_what_it_runs_at(
    partial: PartialModel, name: str, built: Callable[..., Any]
) -> None:
    said = {one.op_id: one.actual for one in built(name).read_back()}
    ids = {partial.table.op_id[row] for row in partial.table.op_rows()}
    convs = {op_id for op_id in ids if "conv2d" in op_id}
    assert len(convs) == 4
    assert convs <= set(said)
    assert set(said) <= ids


@pytest.mark.parametrize("name", NAMES)
def test_saved_subgraphs_run_by_the_file_beside_them_without_this_project(
    partial: PartialModel, name: str, tmp_path: Path, built: Callable[..., Any]
) -> None:
    path = built(name).save(tmp_path / "saved")
    assert (path / "run_pieces.py").read_text(encoding="utf-8") == Path(run_pieces.__file__).read_text(encoding="utf-8")
    torch.save({"state": partial.module.state_dict(), "x": EXAMPLES[1]}, tmp_path / "given.pt")
    (tmp_path / "model.py").write_text(MODEL_TEXT, encoding="utf-8")
    (tmp_path / "use.py").write_text(USE_TEXT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["used", "0", "missed"]
    with torch.no_grad():
        wanted = partial.module(EXAMPLES[1])
    assert not difference(wanted, torch.load(tmp_path / "result.pt"))  # noqa: TID251 - a file that this test wrote


MODEL_TEXT = """
import torch
from torch import nn

class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
        self.head = nn.Linear(32, 7)

    def forward(self, image):
        x = self.stem(image)
        if x.mean() > 0:
            x = self.body(x)
        return self.head(torch.relu(x).mean((2, 3)))
"""
USE_TEXT = """
import sys
sys.path.insert(0, "saved")
import torch
from model import Gated
from run_pieces import load

assert "ace_studio" not in sys.modules
given = torch.load("given.pt")
module = Gated()
module.load_state_dict(given["state"])
model = load(module, "saved", threads=1)
torch.save(model(given["x"]), "result.pt")
assert not model.waiting, "a subgraph was never used"
print("used", model.missed, "missed")
"""


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_subgraphs_are_compressed_by_the_plan_with_ranges_from_their_own_calls(
    partial: PartialModel, name: str, built: Callable[..., Any]
) -> None:
    first = partial.table.op_id[next(iter(partial.table.op_rows()))]
    plan = Plan(default=Precision.INT8_STATIC, rules=(PlanRule(match=f"id:{first}", precision=Precision.FP32),))
    lowered = built(name, plan)
    said = {one.op_id: one.actual for one in lowered.read_back()}
    convs = [op_id for op_id in said if "conv2d" in op_id]
    assert said[first] == "fp32"
    assert [said[op_id] for op_id in convs if op_id != first] == ["int8-static"] * 3
    with torch.no_grad():
        wanted = partial.module(EXAMPLES[0])
    given = lowered(EXAMPLES[0])
    assert 15 < sqnr_db([wanted], [given]) < 80


def test_a_subgraph_that_a_target_cannot_take_stays_eager_and_says_why(
    partial: PartialModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TARGETS["eager"]
    build, count = target.lower, iter(range(9))

    def second_fails(job: LoweringJob) -> Any:
        if next(count) == 1:
            raise AceError.of(ErrorCode.UNSUPPORTED, "No kernel", why="made up for this test")
        return build(job)

    monkeypatch.setattr(target, "lower", second_fails)
    lowered = lower(partial, "eager", tmp_path)
    reasons = {one.op_id.partition(".")[0]: one.reason for one in lowered.read_back()}
    assert "made up for this test" in reasons["p1"]
    assert "made up" not in reasons["p0"]
    with torch.no_grad():
        assert not difference(partial.module(EXAMPLES[0]), lowered(EXAMPLES[0]))


@pytest.mark.parametrize("error", [AceError.of(ErrorCode.UNSUPPORTED, "No kernel"), KeyError("No kernel")])
def test_a_target_that_can_take_no_subgraph_is_an_error(
    partial: PartialModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(job: LoweringJob) -> Any:
        raise error

    monkeypatch.setattr(TARGETS["eager"], "lower", fails)
    with pytest.raises(type(error), match="No kernel"):
        lower(partial, "eager", tmp_path)


def test_a_subgraph_that_is_slower_than_eager_is_not_used(
    partial: PartialModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ace_studio.engine.targets.partial.lower.SLOWER", 0.0)
    lowered = lower(partial, "eager", tmp_path)
    assert all("slower than eager here" in one.reason for one in lowered.read_back())
    with torch.no_grad():
        assert torch.equal(partial.module(EXAMPLES[0]), lowered(EXAMPLES[0]))


@pytest.mark.parametrize(("slower", "said"), [(0.0, ["pieces-slower"]), (1e9, [])])
def test_that_no_subgraph_is_worth_its_place_is_said_as_that(
    partial: PartialModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slower: float, said: list[str]
) -> None:
    # Every subgraph by itself is fast enough; the model as a whole decides.
    monkeypatch.setattr(subgraphs, "unless_slower", lambda one, lowered, _: subgraphs.BuiltSubgraph(one, lowered))
    monkeypatch.setattr(subgraphs, "SLOWER", slower)
    job = job_of(partial, TARGETS["eager"], tmp_path, Plan())
    lower_subgraphs(TARGETS["eager"], partial, job)
    assert [one.code for one in job.reporter.warnings] == said


@pytest.mark.slow
def test_the_worst_subgraph_tells_the_arithmetic_apart_from_the_decisions(
    built: Callable[..., Any],
) -> None:
    exact = built("onnxruntime").subgraph_sqnr_db()
    coarse = built("onnxruntime", Plan(default=Precision.INT8_STATIC))
    assert exact > 90 > coarse.subgraph_sqnr_db() > 10


def test_subgraphs_of_another_class_are_refused(built: Callable[..., Any], tmp_path: Path) -> None:
    path = built("eager").save(tmp_path / "saved")
    with pytest.raises(ValueError, match="belong to a Gated"):
        run_pieces.load(nn.Linear(2, 2), path)


def test_the_plan_of_a_subgraph_is_that_of_its_ops_in_the_model(partial: PartialModel) -> None:
    plan = Plan(rules=(PlanRule(match="module:body.*", precision=Precision.BF16),))
    bound: BoundPlan = bind_plan(plan, partial.table, op_problem=lambda *_: "")
    assert {op_id.partition(".")[0] for op_id in bound.ops_at(Precision.BF16)} == {"p1"}


class GatedAttention(nn.Module):
    """Attention behind a branch by a value: torch has a fast path for it, by which the compiler guards."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 1)
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.out = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, x: Tensor) -> Tensor:
        if torch.sigmoid(self.gate(x)).mean() > 0.01:
            x = x + self.attend(x, x, x, need_weights=False)[0]
        return self.out(x)


def test_subgraphs_with_attention_go_on_running_after_the_first_call() -> None:
    torch.manual_seed(0)
    examples = [torch.randn(2, 24, 64), torch.randn(3, 32, 64)]
    captured, _ = capture_by("partial", GatedAttention().eval(), examples)
    assert isinstance(captured, PartialModel)
    assert any("attend" in row for row in captured.table.module)
    hosted = [run_pieces.HostedSubgraph(one.place, one.captured.module) for one in captured.subgraphs]
    runner = run_pieces.SubgraphRunner(captured.module, hosted)
    per_call = []
    for _ in range(6):
        before = runner.ran
        captured.example.copied().call(runner)
        per_call.append(runner.ran - before)
    assert per_call == [len(captured.subgraphs)] * 6


def test_subgraphs_are_timed_by_the_clock_of_their_device(
    partial: PartialModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.device] = []

    def timer(device: torch.device) -> Timer:
        asked.append(device)
        return wall_clock_ms

    monkeypatch.setattr(subgraphs, "timer_for", timer)
    lower(partial, "eager", tmp_path)
    assert asked == [torch.device("cpu")] * (len(partial.subgraphs) + 1)
