import pytest
import torch

from ace_studio.engine.metrics.loss import differentiable_loss, scalar_loss
from ace_studio.records.errors import AceError, ErrorCode


def test_one_number_in_a_tensor_is_a_loss():
    value = torch.tensor([0.5])
    assert scalar_loss(value) is value


@pytest.mark.parametrize(("value", "shown"), [(0.5, "float"), (torch.zeros(2, 3), "shape (2, 3)"), (None, "NoneType")])
def test_anything_else_is_refused_with_what_it_is(value, shown):
    with pytest.raises(AceError, match="not one number") as caught:
        scalar_loss(value)
    assert caught.value.problem.code is ErrorCode.USER_CODE
    assert shown in caught.value.problem.what


def test_a_loss_without_a_gradient_cannot_train():
    weight = torch.ones(1, requires_grad=True)
    assert differentiable_loss(weight * 2).requires_grad
    with pytest.raises(AceError, match="does not depend on the weights"):
        differentiable_loss((weight * 2).detach())
