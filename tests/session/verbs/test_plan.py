"""The verbs about precisions."""

from ace_studio.records.errors import ErrorCode
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.session import Session


def test_a_rule_that_says_nothing_is_a_problem(opened: Session) -> None:
    opened.plan.set_rule("layer1", Precision.BF16)
    assert opened.document.problems[0].code is ErrorCode.RECIPE
    assert not opened.document.can_undo


def test_the_precision_of_ops_replaces_their_own_rules_only(opened: Session) -> None:
    opened.plan.set_rule("op:aten.*", Precision.BF16)
    opened.plan.set_precision_of_ops(["a", "b", "a"], Precision.FP32)
    opened.plan.set_precision_of_ops(["b"], Precision.INT8_STATIC)
    assert [(rule.match, str(rule.precision)) for rule in opened.document.recipe.plan.rules] == [
        ("op:aten.*", "bf16"),
        ("id:a", "fp32"),
        ("id:b", "int8-static"),
    ]
    assert not opened.document.recipe.plan.from_goal
    opened.plan.set_precision_of_ops(["a", "b"], None)
    assert [rule.match for rule in opened.document.recipe.plan.rules] == ["op:aten.*"]
