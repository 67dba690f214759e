"""The test of a branch is rewritten so that it stays a tensor."""

import ast

import pytest
import torch

from ace_studio.engine.fixes.conditions import condition_text


def rewritten(test: str, **made: str) -> str:
    definitions = {name: ast.parse(text, mode="eval").body for name, text in made.items()}
    return condition_text(ast.parse(test, mode="eval").body, ast.unparse, definitions)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x.sum() > 0", "x.sum() > 0"),
        ("x.sum().item() > 0", "x.sum() > 0"),
        ("float(x.sum()) > 0", "x.sum() > 0"),
        ("not x.any()", "~(x.any())"),
        ("x.any() and self.flag", "(x.any()) & (self.flag)"),
        ("x.any() or y.all()", "(x.any()) | (y.all())"),
        ("0 < x < 9", "(0 < x) & (x < 9)"),
        ("bool(x.any())", "x.any()"),
        ("torch.equal(x, y)", "(x == y).all()"),
        ("x", "x.bool()"),
        ("x + y", "(x + y).bool()"),
    ],
)
def test_every_form_of_a_test_has_a_counterpart_on_tensors(test, expected):
    assert rewritten(test) == expected


def test_a_name_is_followed_to_the_number_that_it_was_assigned():
    assert rewritten("n > 3", n="x.sum().item()") == "x.sum() > 3"
    assert rewritten("n > 3", n="x.sum()") == "n > 3"


@pytest.mark.parametrize(
    "test", ["x.sum() > 0 and not x.max() > 2", "-3 < x.min() <= x.max() < 2.5", "bool(x.min() < 0)"]
)
@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_the_tensor_has_the_truth_of_the_test(test, shift):
    scope = {"x": torch.arange(3.0) + shift, "torch": torch}
    value = eval(rewritten(test), scope)  # noqa: S307 - our own text
    assert isinstance(value, torch.Tensor)
    assert bool(value) is bool(eval(test, scope))  # noqa: S307
