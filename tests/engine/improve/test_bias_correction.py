from __future__ import annotations

from ace_studio.engine.quantize import fake_quantize
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by


def test_bias_correction_takes_the_mean_error_out(convs, monkeypatch):
    monkeypatch.setattr(fake_quantize, "int8_weight_bits", lambda: 8)  # of this machine, and of others
    plan = Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    found = improved_by(convs, plan, [ImproveMethod.BIAS_CORRECTION], examples_of(12, 3, 12, 12))
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 1.0
