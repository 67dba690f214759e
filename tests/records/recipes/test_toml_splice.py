"""A recipe that a person wrote keeps its comments, order, blanks and notation when values change."""

import difflib

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from ace_studio.records.recipes.file import parse_recipe, recipe_text, text_with
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, Recipe
from ace_studio.records.tensors import DimChoice
from tests.records.any_recipe import recipes

MINE = """\
# The recipe of the team. Ask Ann before you change the goal.
format = 1

[targets]       # first what we ship
names = [
  "openvino",   # the laptops
  "onnxruntime",  # the rest
]

[model]
source   = 'net.py'     # the net
entry    = "make_model"

# --- inputs ---
[inputs]
[[inputs.rows]]
x = { shape = [1, 3, 32, 32], values = "random" }  # one picture
[[inputs.rows]]
x = { shape = [2, 3, 32, 32] }

[inputs.dims]
"x.0" = "dynamic"  # batches

[goal]
max_drop = 0.01   # agreed

[plan]
default = "int8-static"

# the head is fragile
[[plan.rules]]
match     = "module:head"   # see ticket 12
precision = "fp32"

# and so is the stem
[[plan.rules]]
match = "module:stem"
precision = "bf16"

[measure]
threads = 2   # as in production
rounds = 50
"""


def changed(text: str, after: Recipe) -> tuple[list[str], list[str]]:
    """Lines removed and added by the change, which has to give that recipe."""
    new = text_with(text, after)
    assert parse_recipe(new, name="r") == after
    diff = [line for line in difflib.ndiff(text.splitlines(), new.splitlines()) if line[0] in "-+"]
    return [line[2:] for line in diff if line[0] == "-"], [line[2:] for line in diff if line[0] == "+"]


def mine(text: str = MINE, **tables: object) -> tuple[list[str], list[str]]:
    before = parse_recipe(text, name="r")
    values = {
        name: replace(getattr(before, name), **one) if isinstance(one, dict) else one for name, one in tables.items()
    }
    return changed(text, replace(before, **values))


def test_the_text_of_an_equal_recipe_stays_as_it_is():
    assert text_with(MINE, parse_recipe(MINE, name="r")) == MINE


def test_a_changed_value_changes_its_line_only_and_keeps_the_comment_behind_it():
    assert mine(measure={"threads": 4, "rounds": 30}) == (
        ["threads = 2   # as in production", "rounds = 50"],
        ["threads = 4   # as in production", "rounds = 30"],
    )


def test_a_new_value_goes_to_the_end_of_its_table_and_a_new_table_to_the_end_of_the_file():
    assert mine(model={"weights": "w.pth"}) == ([], ['weights = "w.pth"'])
    assert mine(calibration={"samples": 8}) == ([], ["", "[calibration]", "samples = 8"])


def test_a_value_that_is_no_more_takes_its_line_along_and_comments_around_it_stay():
    gone, new = mine(goal=Goal(min_sqnr_db=30.0))
    assert gone == ["max_drop = 0.01   # agreed"] and new == ["min_sqnr_db = 30.0"]
    gone, new = mine(goal=Goal())
    assert gone[-1] == "max_drop = 0.01   # agreed" and not new


RULES = parse_recipe(MINE, name="r").plan.rules
LAST = PlanRule(match="op:softmax", precision=Precision.FP32)


@pytest.mark.parametrize(
    ("rules", "gone", "new"),
    [
        (RULES[1:], 3, []),
        (RULES[:1], 3, []),
        ((*RULES, LAST), 0, ["[[plan.rules]]", "", 'match = "op:softmax"', 'precision = "fp32"']),
        ((LAST, *RULES), 0, ["", "[[plan.rules]]", 'match = "op:softmax"', 'precision = "fp32"']),
        ((replace(RULES[0], precision=Precision.FP16), RULES[1]), 1, ['precision = "fp16"']),
    ],
)
def test_rules_change_one_by_one_and_the_comments_above_them_stay(rules, gone, new):
    removed, added = mine(plan={"rules": tuple(rules)})
    assert len(removed) == gone and sorted(added) == sorted(new)
    assert not any(line.startswith("#") for line in removed)


def test_items_of_an_array_over_several_lines_change_one_by_one():
    assert mine(targets={"names": ("openvino", "eager", "inductor")}) == (
        ['  "onnxruntime",  # the rest'],
        ['  "eager",  # the rest', '  "inductor",'],
    )
    assert mine(targets={"names": ("onnxruntime",)}) == (['  "openvino",   # the laptops'], [])


def test_a_dimension_is_added_to_the_table_of_dimensions():
    dims = {"x.0": DimChoice.DYNAMIC, "x.2": DimChoice.STATIC}
    assert mine(inputs={"dims": dims}) == ([], ['"x.2" = "static"'])


@pytest.mark.parametrize(
    ("start", "new"),
    [
        ("goal.max_drop = 0.01  # dotted\n[model]", ["goal.min_sqnr_db = 20.0"]),
        ("goal = { max_drop = 0.01 }\n[model]", ["goal = { max_drop = 0.01, min_sqnr_db = 20.0 }"]),
    ],
)
def test_tables_keep_the_notation_that_their_author_chose(start, new):
    text = MINE.replace("\n[goal]\nmax_drop = 0.01   # agreed\n", "").replace("[targets]", start, 1)
    text = text.replace("[model]       #", "[targets]       #", 1)
    assert mine(text, goal=Goal(max_drop=0.01, min_sqnr_db=20.0))[1] == new


def test_line_endings_and_the_mark_of_windows_editors_stay():
    text = "\ufeff" + MINE.replace("\n", "\r\n")
    new = text_with(text, replace(parse_recipe(text, name="r"), goal=Goal(min_sqnr_db=30.0)))
    assert new.startswith("\ufeff#") and new.count("\n") == new.count("\r\n") == text.count("\n")


@given(before=recipes(), after=recipes())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_recipe_becomes_any_other_in_place(before, after):
    text = "# mine\n" + recipe_text(before).replace("]\n", "]   # c\n")
    new = text_with(text, after)
    assert parse_recipe(new, name="r") == after and new.startswith("# mine\n")
