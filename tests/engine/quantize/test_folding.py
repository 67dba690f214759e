from __future__ import annotations

import pytest

from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from tests.engine.quantize.graphs import op_ids, run, targets


@pytest.mark.parametrize("program", ["conv1d", "conv2d"])
def test_a_folded_batch_norm_changes_nothing_but_the_graph(program, request):
    given = request.getfixturevalue(program)
    graph_module = flat_graph(given.exported)
    assert fold_batch_norms(graph_module, op_ids(graph_module)) == {"batch_norm": program}
    assert "aten.batch_norm.default" not in targets(graph_module)
    assert sqnr_db([given.expected], list(run(graph_module, given.example))) > 100


def test_a_convolution_that_may_not_change_keeps_its_batch_norm(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert fold_batch_norms(graph_module, {"conv2d_1"}) == {}
    assert "aten.batch_norm.default" in targets(graph_module)
