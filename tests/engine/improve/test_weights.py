import torch

from ace_studio.engine.improve import with_changed_weights
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by


def test_changes_for_an_op_that_stays_in_float_are_left_out(block):
    found = improved_by(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.GPTQ], examples_of(4, 32))
    assert found.changes
    assert with_changed_weights(block, found.changes, is_low=lambda op_id: False) is block
    one = with_changed_weights(block, found.changes, is_low=lambda op_id: op_id == "linear")
    before, after = (dict(each.program.state_dict) for each in (block, one))
    assert {name for name in before if not torch.equal(before[name], after[name])} == {"up.weight"}


def test_the_captured_weights_and_the_module_stay_as_they_were(block):
    before = {name: value.clone() for name, value in block.module.state_dict().items()}
    improved_by(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.AWQ, ImproveMethod.GPTQ], examples_of(4, 32))
    assert all(torch.equal(value, before[name]) for name, value in block.module.state_dict().items())
    assert all(torch.equal(value, before[name]) for name, value in block.program.state_dict.items() if name in before)
