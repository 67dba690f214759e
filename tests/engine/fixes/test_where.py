"""A branch rewritten with torch.where computes what it computed."""

import pytest

from ace_studio.records.fixes import FixKind
from tests.engine.fixes.branches import CHAIN, EVERY, FORMS, assert_same, found, source_of


@pytest.mark.parametrize("form", [*FORMS, "chain"])
def test_torch_where_computes_what_the_branch_computed(tmp_path, form):
    body = {**FORMS, "chain": CHAIN.replace('{"x": x}', "x").replace('{"x": a}', "a").replace('{"x": b}', "b")}[form]
    one = found(tmp_path, body, FixKind.WHERE)
    assert not one.refusal and " if " not in one.text.replace("# else", "")
    assert_same(source_of(body), one.text, *EVERY)


def test_results_in_a_dictionary_are_chosen_item_by_item(tmp_path):
    body = 'def forward(self, x):\n    if x.sum() > 0:  # here\n        return {"a": x}\n    return {"a": x + 1}'
    one = found(tmp_path, body, FixKind.WHERE)
    assert 'return {"a": torch.where(is_taken, x, x + 1)}' in one.text
    assert_same(source_of(body), one.text, *EVERY)


@pytest.mark.parametrize(
    ("side", "why"),
    [
        ("for _ in range(3):\n            x = x + 1", "no plain assignment (for)"),
        ("y = x + 1\n    x = y", "'y' gets a value on one side only"),
        ("return None", "one side returns None"),
        ("x = f'{x}'", "f-string"),
    ],
)
def test_torch_where_is_refused_where_it_cannot_be_written(tmp_path, side, why):
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        {side}\n    return x"
    assert why in found(tmp_path, body, FixKind.WHERE).refusal
