"""Keys and values as TOML writes them."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.toml_values import changed_fields, pair_text, value_text

_scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=8))
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(key=st.text(max_size=8), value=_values)
def test_whatever_is_written_is_read_back(key, value):
    assert tomllib.loads(pair_text(key, value)) == {key: value}


def test_a_record_is_written_without_its_defaults():
    rule = PlanRule(match="op:softmax", precision=Precision.FP32)
    assert dict(changed_fields(rule)) == {"match": "op:softmax", "precision": Precision.FP32}
    assert value_text(rule) == '{ match = "op:softmax", precision = "fp32" }'
