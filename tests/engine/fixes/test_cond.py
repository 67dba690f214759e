"""A branch rewritten with torch.cond computes what it computed."""

import pytest

from ace_studio.records.fixes import FixKind
from tests.engine.fixes.branches import CHAIN, FORMS, X, assert_same, found, source_of


def test_results_nested_twice_are_left_to_torch_cond(tmp_path):
    assert "nested more than once" in found(tmp_path, CHAIN, FixKind.WHERE).refusal
    one = found(tmp_path, CHAIN, FixKind.COND)
    assert one.text.count("torch.cond(") == 2 and " if " not in one.text


# torch.cond compiles itself when it is called; one form of each is run, the rest is run by the tests of the trying
@pytest.mark.parametrize("form", ["early", "else", "expression"])
def test_torch_cond_computes_what_the_branch_computed(tmp_path, form):
    one = found(tmp_path, FORMS[form], FixKind.COND)
    assert not one.refusal
    assert_same(source_of(FORMS[form]), one.text, X, -X)


def test_torch_cond_takes_a_loop_inside_of_a_side(tmp_path):
    side = "for _ in range(3):\n            x = x + 1"
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        {side}\n    return x"
    one = found(tmp_path, body, FixKind.COND)
    assert "def taken_side(x):" in one.text and "torch.cond(x.sum() > 0, taken_side, other_side, (x,))" in one.text
