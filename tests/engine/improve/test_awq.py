from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by


def test_awq_helps_outlier_channels_at_four_bits(block):
    found = improved_by(
        block, Plan(default=Precision.INT4_WEIGHT, group_size=0), [ImproveMethod.AWQ], examples_of(6, 32)
    )
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 2.0
