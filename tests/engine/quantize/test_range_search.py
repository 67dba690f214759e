from __future__ import annotations

import operator

import pytest
import torch
from torch import fx

from ace_studio.engine.quantize.affine import affine_grid
from ace_studio.engine.quantize.pt2e import is_torchao_installed
from ace_studio.engine.quantize.range_search import write_out_range_searches

pytestmark = pytest.mark.skipif(not is_torchao_installed(), reason="needs torchao")


def searching_graph() -> fx.GraphModule:
    """Gives scale and zero point of its input, as torchao's dynamic quantization finds them."""
    import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401 - registers the operators

    graph = fx.Graph()
    x = graph.placeholder("x")
    search = torch.ops.quantized_decomposed.choose_qparams.tensor
    found = graph.call_function(search, (x, 0, 255, 2.0**-12, torch.uint8))
    graph.output(tuple(graph.call_function(operator.getitem, (found, at)) for at in (0, 1)))
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize("bounds", [(-1.0, 3.0), (2.0, 3.0), (-3.0, -2.0), (0.0, 0.0)])
def test_the_search_that_is_written_out_finds_a_grid_that_has_zero_on_it(bounds):
    graph_module = searching_graph()
    assert write_out_range_searches(graph_module) == 1
    scale, zero_point = graph_module(torch.linspace(*bounds, 10))
    if bounds == (0.0, 0.0):
        assert float(scale) == 2.0**-12
        return
    grid = affine_grid(*map(torch.tensor, bounds))
    torch.testing.assert_close(scale.float(), grid.scale)
    assert int(zero_point) == int(grid.zero_point)


def test_a_graph_without_searches_is_left_alone():
    graph = fx.Graph()
    graph.output(graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("x"),)))
    assert write_out_range_searches(fx.GraphModule({}, graph)) == 0
