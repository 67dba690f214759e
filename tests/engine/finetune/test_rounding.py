import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses

from ace_studio.engine.finetune.rounding import Rounding, straight_through
from ace_studio.engine.quantize.affine import affine_grid, weight_grid
from ace_studio.records.processor import int8_weight_bits
from tests import tiny_models
from tests.engine.finetune.training_jobs import batches


def test_rounding_gives_what_the_targets_grids_give_and_leaves_nothing_behind():
    module = tiny_models.mlp().module
    data = [example for example, _ in batches(3)]
    rounding = Rounding(module, {"0": module[0], "2": module[2]})
    rounding.calibrate(data)
    before, names = weights(module), list(module.state_dict())
    with rounding.applied(), torch.no_grad():
        given = data[0].call(module)
    values = torch.cat([one.args[0] for one in data])
    hidden, bits = torch.relu(module[0](values)), int8_weight_bits()
    with torch.no_grad():
        x = affine_grid(*values.aminmax(), bits=8).round_trip(data[0].args[0])
        weight = weight_grid(module[0].weight, bits=bits).round_trip(module[0].weight)
        first = torch.relu(F.linear(x, weight, module[0].bias))
        first = affine_grid(*hidden.detach().aminmax(), bits=8).round_trip(first)
        wanted = F.linear(first, weight_grid(module[2].weight, bits=bits).round_trip(module[2].weight), module[2].bias)
    assert torch.allclose(given, wanted, atol=1e-6)
    assert list(module.state_dict()) == names and not module[0]._forward_pre_hooks
    assert all(torch.equal(one, other) for one, other in zip(before, weights(module), strict=True))


def weights(module):
    return [one.detach().clone() for one in module.parameters()]


def test_gradients_pass_inside_the_range_and_stop_outside():
    values = torch.tensor([-3.0, -0.5, 0.2, 0.9, 5.0], requires_grad=True)
    grid = affine_grid(torch.tensor(-1.0), torch.tensor(1.0), bits=8)
    straight_through(values, grid).sum().backward()
    assert values.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
