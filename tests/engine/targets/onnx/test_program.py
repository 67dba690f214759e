"""The ONNX form of a captured graph: names, dynamic sizes, where nodes came from, refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils import _pytree as pytree

from ace_studio.engine.load import make_importable
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.program import export_onnx
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.captured import captured_of
from tests.engine.targets.onnx_cases import capture, captured_easy, exported, job_for, sqnr_db
from tests.tiny_models import TinyModel, many_outputs, recurrent

torch.set_num_threads(1)


def dims(entry) -> list[str | int]:
    return [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim]


def test_inputs_keep_their_names_and_dynamic_sizes_are_called_after_them():
    program = exported(captured_easy("lstm_cell"))
    assert {entry.name: dims(entry) for entry in program.model.graph.input} == {
        "x": ["x_0", 8],
        "state": [2, "x_0", 16],
    }


def test_dynamic_sizes_of_what_the_product_captured_are_called_after_the_inputs_too():
    class Pair(nn.Module):
        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return left @ right

    pairs = [(torch.ones(n, 8), torch.ones(8, m)) for n, m in ((2, 3), (4, 5))]
    program = export_onnx(captured_of(Pair(), *pairs))
    assert {entry.name: dims(entry) for entry in (*program.model.graph.input, *program.model.graph.output)} == {
        "left": ["left_0", 8],
        "right": [8, "right_1"],
        "output": ["left_0", "right_1"],
    }


def test_regions_of_torchvision_become_one_node_whatever_library_it_has():
    make_importable()
    ops = pytest.importorskip("torchvision.ops")

    class Pool(nn.Module):
        def forward(self, features: Tensor, regions: Tensor) -> Tensor:
            return ops.roi_align(features.relu(), regions, (2, 2), 1.0, 2)

    regions = torch.tensor([[0.0, 1.0, 1.0, 6.0, 5.0], [0.0, 2.0, 2.0, 7.0, 7.0]])
    features = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    captured = capture(TinyModel(Pool(), [(features, regions), (features[:1], regions[:1].repeat(3, 1))]))
    program = exported(captured)
    assert "RoiAlign" in {node.op_type for node in program.model.graph.node}
    target = TARGETS["onnxruntime"]
    lowered = target.lower(job_for(target, captured))
    assert sqnr_db([captured.module(features, regions)], [lowered(features, regions)]) > 100


def test_outputs_are_named_by_their_path_and_constants_are_left_out():
    captured = capture(many_outputs())
    program = export_onnx(captured)
    names = ["output_0", "output_1.high", "output_1.both.0", "output_1.both.1"]
    assert [entry.name for entry in program.model.graph.output] == names


def test_exporting_leaves_the_captured_graph_as_it_was():
    captured = capture(many_outputs())
    before = (str(captured.program.graph), [node.meta.get("stack_trace") for node in captured.program.graph.nodes])
    export_onnx(captured)
    assert before == (
        str(captured.program.graph),
        [node.meta.get("stack_trace") for node in captured.program.graph.nodes],
    )


@pytest.mark.parametrize("name", ["conv_net_any_size", "text_model", "lstm_cell", "many_outputs"])
def test_every_node_knows_its_op_and_every_op_has_a_node_or_a_reason(name):
    captured = captured_easy(name)
    program = exported(captured)
    ids = {captured.table.op_id[row] for row in captured.table.op_rows()}
    assert all(program.owners[node.name] for node in program.model.graph.node)
    assert {op_id for owners in program.owners.values() for op_id in owners} | set(program.folded) == ids


def test_a_decomposed_op_owns_all_of_its_nodes_although_inner_names_collide_with_ours():
    captured = captured_easy("lstm_cell")
    program = exported(captured)
    owned = {node.op_type for node in program.model.graph.node if program.owners[node.name][0] == "lstm_cell"}
    assert {"Gemm", "Sigmoid", "Tanh", "Split"} <= owned
    outer = [node for node in program.model.graph.node if program.owners[node.name][0] == "sigmoid"]
    assert [node.op_type for node in outer] == ["Sigmoid"]


def test_a_batch_norm_is_folded_into_its_convolution_which_stays_the_main_op():
    program = exported(captured_easy("conv_net"))
    types = [node.op_type for node in program.model.graph.node]
    assert "BatchNormalization" not in types
    first = next(node for node in program.model.graph.node if node.op_type == "Conv")
    assert program.owners[first.name] == ("conv2d", "batch_norm")


class Spectrum(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return (x.abs() + 1e-10).log(), 1 / (x * 1e-9 - 1e-12) / 1.000005


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_small_and_nearly_neutral_numbers_stay(name):
    pytest.importorskip(name)
    captured = capture(TinyModel(Spectrum(), [(torch.randn(2, 6),), (torch.randn(3, 6),)]))
    lowered = TARGETS[name].lower(job_for(TARGETS[name], captured))
    for x in (torch.zeros(2, 6), torch.full((1, 6), 1e-9), torch.randn(4, 6)):
        torch.testing.assert_close(lowered(x), captured.module(x), rtol=1e-4, atol=1e-4)


def test_what_the_optimizer_breaks_is_dropped(monkeypatch):
    pytest.importorskip("onnxruntime")

    def broken(program):
        next(node for node in program.model.graph if node.op_type == "Relu").op_type = "Neg"

    monkeypatch.setattr(torch.onnx.ONNXProgram, "optimize", broken)
    program = export_onnx(captured_easy("conv_net"))
    assert {"Relu", "BatchNormalization"} <= {node.op_type for node in program.model.graph.node}


def test_a_recurrent_network_takes_lengths_that_were_not_traced():
    tiny = recurrent()
    captured = captured_of(tiny.module, *tiny.examples)
    lowered = TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured))
    for example in (*captured.examples, *captured.unseen):
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 100


class Returns(nn.Module):
    def forward(self, x: Tensor, unused: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x


def test_an_input_that_is_also_a_result_and_one_that_nothing_reads_keep_their_names():
    model = TinyModel(Returns(), [(torch.zeros(1, 4), torch.zeros(3)), (torch.zeros(2, 4), torch.zeros(3))])
    program = export_onnx(capture(model))
    assert [entry.name for entry in program.model.graph.input] == ["x", "unused"]
    assert [entry.name for entry in program.model.graph.output] == ["output_0", "output_1"]


class Cache:
    """A container that looks at its tensors when it is made, as caches of language models do."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.parts = {"keys": torch.cat([torch.tensor([]).view(0, 4), keys]), "values": values.to(keys.dtype)}


pytree.register_pytree_node(
    Cache,
    lambda value: (list(value.parts.values()), list(value.parts)),
    lambda items, _keys: Cache(*items),
    serialized_type_name="tests.Cache",
    flatten_with_keys_fn=lambda value: (
        [(pytree.MappingKey(key), item) for key, item in value.parts.items()],
        list(value.parts),
    ),
)


class Fills(nn.Module):
    def forward(self, x: Tensor) -> object:
        return {"y": x * 2, "past": Cache(x + 1, x - 1)}


def test_results_in_a_container_that_asks_for_tensors_when_it_is_made_are_named():
    model = TinyModel(Fills(), [(torch.zeros(1, 4),), (torch.zeros(2, 4),)])
    names = [entry.name for entry in export_onnx(capture(model)).model.graph.output]
    assert names == ["y", "past.keys", "past.values"]


class LastOfComputed(nn.Module):
    """Divides by the last of as many values as a convolution with a stride leaves, as DETR does."""

    def __init__(self) -> None:
        super().__init__()
        self.halve = nn.Conv2d(1, 1, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.ones((x.shape[0], *self.halve(x).shape[-2:])).cumsum(1)
        return self.halve(x) * (seen / (seen[:, -1:, :] + 1e-6))[:, None]


class LearnedBias(nn.Module):
    """Adds learned numbers to the scores of an attention, as T5 does."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(9, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = x.view(batch, length, 2, 4).transpose(1, 2)
        steps = torch.arange(length)
        bias = self.places((steps[:, None] - steps[None]).clamp(-4, 4) + 4).permute(2, 0, 1)[None]
        found = scaled_dot_product_attention(heads, heads, heads, attn_mask=bias.contiguous())
        return found.transpose(1, 2).reshape(batch, length, -1).contiguous()


@pytest.mark.parametrize("module", [LastOfComputed, LearnedBias])
def test_sizes_are_compared_and_attentions_described_as_they_were_traced(module):
    shapes = ((2, 6, 8), (3, 8, 8)) if module is LearnedBias else ((2, 1, 6, 6), (3, 1, 9, 6))
    model = TinyModel(module().eval(), [(torch.randn(*shape),) for shape in shapes])
    captured = captured_of(model.module, *model.examples)
    lowered = TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 100


class Singular(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.svd(x)[1]


def test_an_op_without_an_onnx_form_is_refused_by_name_with_its_line(capfd):
    captured = capture(TinyModel(Singular(), [(torch.eye(3),), (torch.eye(3),)]))
    with pytest.raises(AceError) as caught:
        export_onnx(captured)
    problem = caught.value.problem
    assert problem.code is ErrorCode.UNSUPPORTED
    assert "aten.linalg_svd" in problem.what
    assert problem.where.startswith("/models/model.py:")
    assert problem.remedy and problem.details and "\x1b" not in problem.details
    assert capfd.readouterr() == ("", "")


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x + self.calls


@pytest.mark.parametrize(
    ("forward", "dtype", "what"),
    [(torch.fft.rfft, torch.float32, "returns complex"), (torch.abs, torch.complex64, "takes complex")],
)
def test_complex_numbers_at_the_border_are_refused_with_a_way_out(forward, dtype, what):
    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return forward(x)

    x = torch.zeros(2, 8, dtype=dtype)
    with pytest.raises(AceError, match=what) as caught:
        export_onnx(capture(TinyModel(Spectrum(), [(x,), (x[:1],)])))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert "view_as_real" in caught.value.problem.remedy


def test_a_model_that_changes_a_buffer_is_refused_because_onnx_has_no_state():
    with pytest.raises(AceError, match="changes calls while it runs"):
        export_onnx(capture(TinyModel(Counts(), [(torch.zeros(1, 4),), (torch.zeros(2, 4),)])))


def test_nothing_is_left_of_what_the_exporter_noted_of_the_users_code():
    model = exported(captured_easy("lstm_cell")).model
    text = model.SerializeToString()
    assert not any(node.metadata_props for node in model.graph.node)
    for word in (b"pkg.torch", b"namespace", b"LstmCell", b"ExportedProgram"):
        assert word not in text
