import torch
from torch import fx

from ace_studio.engine.quantize.casts import cast_problem, insert_casts
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.records.recipes.plan import Precision
from tests.engine.quantize.graphs import op_ids, run


def _dtypes(graph_module, *inputs):
    """Op id -> element type that the op really gives."""
    found = {}

    class Recorder(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if OP_ID in n.meta and isinstance(result, torch.Tensor):
                found[n.meta[OP_ID]] = result.dtype
            return result

    with torch.no_grad():
        Recorder(graph_module).run(*inputs)
    return found


def _casts(graph_module):
    return [node for node in graph_module.graph.nodes if node.target is torch.ops.aten.to.dtype]


def test_planned_ops_compute_in_bf16_and_the_others_do_not(mlp):
    graph_module = flat_graph(mlp.exported)
    assert insert_casts(graph_module, {"linear": Precision.BF16}) == {}
    found = _dtypes(graph_module, mlp.example)
    assert found["linear"] is torch.bfloat16
    assert found["relu"] is found["linear_1"] is torch.float32


def test_outputs_keep_their_type_and_stay_close(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, dict.fromkeys(op_ids(graph_module), Precision.BF16))
    (result,) = run(graph_module, mlp.example)
    assert result.dtype is torch.float32
    assert 30 < sqnr_db([mlp.expected], [result]) < 100


def test_neighbouring_casts_cancel(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, dict.fromkeys(op_ids(graph_module), Precision.BF16))
    assert len(_casts(graph_module)) == 2


def test_weights_of_lowered_ops_are_stored_in_16_bits_only(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, {"linear": Precision.FP16})
    stored = {name: tensor.dtype for name, tensor in graph_module.state_dict().items()}
    assert sorted(str(dtype) for dtype in stored.values()) == ["torch.float16"] * 2 + ["torch.float32"] * 2


def test_the_model_s_own_weights_are_not_touched(mlp):
    before = {name: tensor.clone() for name, tensor in mlp.module.state_dict().items()}
    insert_casts(flat_graph(mlp.exported), {"linear": Precision.BF16})
    assert all(torch.equal(tensor, before[name]) for name, tensor in mlp.module.state_dict().items())


def test_dynamic_sizes_stay_dynamic(conv1d):
    graph_module = flat_graph(conv1d.exported)
    insert_casts(graph_module, dict.fromkeys(op_ids(graph_module), Precision.BF16))
    assert run(graph_module, conv1d.example[:3])[0].shape == (3, 4)


def test_an_op_that_sums_up_is_refused_with_a_reason(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert "fp32" in insert_casts(graph_module, {"mean": Precision.BF16})["mean"]
    assert cast_problem("aten.softmax.int")
    assert not cast_problem("aten.conv2d.default")
    assert not _casts(graph_module)
