import pytest
import torch

from ace_studio.engine.ops import families

NAMED = {name: value for name, value in vars(families).items() if isinstance(value, frozenset)}


@pytest.mark.parametrize("family", NAMED)
def test_every_operator_of_a_family_exists_in_torch(family):
    for op in NAMED[family]:
        _, name, overload = op.split(".")
        assert overload in getattr(torch.ops.aten, name).overloads()


@pytest.mark.parametrize("op", sorted(families.IDENTITIES - {"aten.dropout.default"}))
def test_identities_give_what_they_read(op):
    _, name, overload = op.split(".")
    value = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(getattr(getattr(torch.ops.aten, name), overload)(value), value)


def test_layout_ops_compute_nothing_so_they_are_neither_products_nor_activations():
    assert not families.LAYOUT_OPS & (families.LINEAR_OPS | families.CLAMPS | families.ADDING_OPS)
