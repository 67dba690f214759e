"""The text of rules, and which precisions need calibration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.recipes.plan import Precision, rule_matches, rule_problem


@pytest.mark.parametrize("match", ["", "layer1", "modul:x", "module:", "module:  ", ":x", "TYPE:x"])
def test_a_malformed_rule_is_told(match):
    assert rule_problem(match)


@given(st.sampled_from(["module", "op", "type", "id"]), st.text(min_size=1).filter(str.strip))
def test_any_pattern_after_a_known_kind_is_well_formed_and_can_be_tried(kind, pattern):
    match = f"{kind}:{pattern}"
    assert rule_problem(match) is None
    rule_matches(match, op_id="a", op="b", module="c.d", module_type="E")


def test_only_static_int8_needs_calibration():
    assert [precision for precision in Precision if precision.needs_calibration] == [Precision.INT8_STATIC]
