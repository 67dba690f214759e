"""What every target does before it builds: it refuses what is not installed and what it cannot do."""

import pytest
import torch

from ace_studio.engine.targets.base import Target
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.targets import RoundingStyle, TargetRow
from tests.engine.targets.conftest import bound, captured_model, make_job


class OnlyFp32(Target):
    """Builds nothing."""

    def precision_problem(self, precision):
        return "" if precision is Precision.FP32 else "it rounds nothing"

    def op_problem(self, op, precision):
        return self.precision_problem(precision)

    def build(self, job):
        return "built"

    def load(self, path, *, threads):
        raise NotImplementedError


def made(**facts):
    return OnlyFp32(TargetRow(name="mine", label="Mine", implementation="mine:OnlyFp32", **facts))


@pytest.fixture
def job(tmp_path):
    captured = captured_model("mlp")
    return lambda precision: make_job(captured, bound("eager", captured, precision), tmp_path)


def test_a_plan_that_it_can_do_is_built(job):
    assert made().lower(job(Precision.FP32)) == "built"


class FixesTheBatch(OnlyFp32):
    """Asks for the number, as a compiler that unrolls a loop does."""

    def build(self, job):
        batch = batch_of(job)
        return int(batch), batch


def batch_of(job):
    return job.captured.program.graph.find_nodes(op="placeholder")[-1].meta["val"].shape[0]


def test_a_size_that_one_target_fixes_is_free_for_the_next(job):
    ready = job(Precision.FP32)
    name = str(batch_of(ready))
    target = FixesTheBatch(TargetRow(name="mine", label="Mine", implementation="mine:FixesTheBatch"))
    size, batch = target.lower(ready)
    assert size == captured_model("mlp").example.tensors()[0].shape[0]
    assert str(batch) == str(batch_of(ready)) == name
    assert not batch.node.shape_env.replacements


def test_a_precision_that_it_cannot_do_is_refused_with_its_reason_and_an_op(job):
    with pytest.raises(AceError) as caught:
        made().lower(job(Precision.INT8_WEIGHT))
    problem = caught.value.problem
    assert (problem.code, problem.why) == (ErrorCode.UNSUPPORTED, "it rounds nothing")
    assert problem.where in captured_model("mlp").table.op_id


def test_a_missing_package_is_reported_before_the_plan_is_looked_at(job):
    target = made(packages=("no_such_package_here",), install="pip install it")
    with pytest.raises(AceError) as caught:
        target.lower(job(Precision.INT8_WEIGHT))
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert caught.value.problem.remedy == "pip install it"


def test_without_packages_its_version_is_that_of_torch():
    assert made().available().version == str(torch.__version__)


def test_it_runs_on_the_cpu_only_unless_it_says_more():
    assert made().device_problem(torch.device("cpu")) == ""
    assert "CPU only" in made().device_problem(torch.device("cuda"))


def test_its_row_names_the_style_that_simulations_use():
    style = made(rounding=RoundingStyle.RESULTS).int8_style(Plan(default=Precision.INT8_STATIC), None)
    assert style.name == "results"


def test_what_is_installed_but_does_not_open_is_not_available_and_the_line_that_mends_it_is_named(monkeypatch):
    target = made(packages=("msgspec",), install="pip install mine")
    assert (target.available().ok, target.available().install) == (True, "")
    monkeypatch.setattr(target, "opening_problem", lambda: "it was built for another torch")
    found = target.available()
    assert (found.ok, found.reason, found.install) == (False, "it was built for another torch", "pip install mine")
    assert found.version
