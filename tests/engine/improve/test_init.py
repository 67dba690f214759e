import pytest
import torch
from torch import nn

from ace_studio.engine.improve import METHODS, improve
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import Block, captured_of, examples_of, improved_by


def _signs():
    """A network whose weights lie on every integer grid: nothing is lost that a method could win back."""
    network = nn.Sequential(nn.Tanh(), nn.Linear(4, 3, bias=False))
    with torch.no_grad():
        network[1].weight.sign_()
    return network


@pytest.mark.parametrize("method", list(ImproveMethod))
def test_every_method_says_why_it_was_left(method):
    module = captured_of(_signs, 4)
    plan = Plan(default=Precision.INT8_STATIC)
    (report,) = improved_by(module, plan, [method], examples_of(3, 4)).reports
    assert not report.kept
    assert report.reason
    (report,) = improved_by(module, plan, [method], examples_of(1, 4)).reports
    assert "two calibration examples" in report.reason
    (report,) = improved_by(module, Plan(default=Precision.BF16), [method], examples_of(3, 4)).reports
    assert "nothing is rounded" in report.reason


def test_the_registry_has_a_row_for_every_word():
    assert set(METHODS) == set(ImproveMethod)


class MaskedBlock(Block):
    """The block with scores behind it of which some are given as minus infinity."""

    def forward(self, x):
        scores = super().forward(x)
        return scores.masked_fill(x[:, :16] > 1.0, float("-inf"))


def test_methods_are_judged_by_the_finite_scores_of_a_masked_model():
    captured = captured_of(MaskedBlock, 32)
    plan = Plan(default=Precision.INT8_STATIC)
    methods = (ImproveMethod.SMOOTHQUANT, ImproveMethod.BIAS_CORRECTION)
    improved = improved_by(captured, plan, methods, examples_of(4, 32))
    smooth, _ = improved.reports
    assert smooth.kept, smooth
    assert smooth.after_db > smooth.before_db + 3.0


def test_a_method_that_fails_is_named_and_the_others_are_tried(monkeypatch):
    def fails(job, changes):
        raise RuntimeError("no kernel for this")

    monkeypatch.setitem(METHODS, ImproveMethod.EQUALIZE, fails)
    captured, reporter = captured_of(Block, 32), Reporter()
    plan = bind_plan(Plan(default=Precision.INT8_STATIC), captured.table, op_problem=lambda op, precision: "")
    methods = (ImproveMethod.EQUALIZE, ImproveMethod.SMOOTHQUANT)
    improved = improve(captured, plan, methods, examples_of(4, 32), ranges=RangeChoice(), reporter=reporter)
    failed, smooth = improved.reports
    assert "no kernel for this" in failed.reason
    assert failed.after_db is None
    assert smooth.kept
    (warning,) = reporter.warnings
    assert warning.code == "not-improved"
    assert "equalize" in warning.what
