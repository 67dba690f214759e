"""The graph of an ONNX file becomes a table with modules, sizes and costs."""

import onnx
import torch
from onnx import TensorProto, helper

from ace_studio.engine.load import OnnxModule, node_ids, onnx_table
from ace_studio.records.graph import OpKind
from tests.engine.load.onnx_samples import write_classifier
from tests.engine.load.samples import load


def test_the_graph_becomes_a_table_with_modules_sizes_and_costs(tmp_path):
    write_classifier(tmp_path / "c.onnx")
    module = load(tmp_path, "c.onnx").module
    assert isinstance(module, OnnxModule)

    table = onnx_table(module, [torch.zeros(2, 3, 8, 8)])

    rows = {table.op_id[row]: row for row in range(len(table))}
    conv, head = rows["stem_stem.0_Conv"], rows["head_Gemm"]
    assert [table.kind[row] for row in (0, len(table) - 1)] == [OpKind.INPUT, OpKind.OUTPUT]
    assert table.op_count == 6
    assert table.op[conv] == "onnx.Conv"
    assert table.module[conv] == "stem.0"
    assert table.shape[conv] == "Nx4x8x8"
    assert table.flops[conv] == 2 * (2 * 4 * 8 * 8) * 3 * 9
    assert table.weight_bytes[conv] == 4 * 3 * 3 * 3 * 4
    assert table.output_bytes[conv] == 2 * 4 * 8 * 8 * 4
    assert table.flops[head] == 2 * (2 * 5) * 4
    assert table.weight_bytes[head] == (4 * 5 + 5) * 4
    assert {"stem", "stem.0", "stem.1", "stem.2", "head"} <= set(table.module_paths)
    edges = set(zip(table.edge_source, table.edge_target, strict=True))
    assert (0, conv) in edges
    assert (head, len(table) - 1) in edges
    assert all(source < target for source, target in edges)


def test_the_modules_that_torch_s_exporter_wrote_are_taken_over(tmp_path):
    write_classifier(tmp_path / "c.onnx")
    model = onnx.load(tmp_path / "c.onnx")
    for key, value in {
        "pkg.torch.onnx.name_scopes": "['', 'body', 'body.conv', 'conv2d']",
        "pkg.torch.onnx.class_hierarchy": "['m.Net', 'm.Body', 'torch.nn.modules.conv.Conv2d', 'aten.conv2d.default']",
    }.items():
        entry = model.graph.node[0].metadata_props.add()
        entry.key, entry.value = key, value
    table = onnx_table(OnnxModule(model, tmp_path / "c.onnx"), [torch.zeros(1, 3, 8, 8)])
    assert table.module[1] == "body.conv"
    types = dict(zip(table.module_paths, table.module_types, strict=True))
    assert (types["body"], types["body.conv"]) == ("Body", "Conv2d")


def test_nodes_without_a_name_and_constants_are_no_trouble(tmp_path):
    nodes = [
        helper.make_node("Constant", [], ["two"], value=helper.make_tensor("t", TensorProto.FLOAT, [1], [2.0])),
        helper.make_node("Mul", ["x", "two"], ["y"]),
        helper.make_node("Mul", ["y", "two"], ["z"]),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xz"]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    loaded = load(tmp_path, "m.onnx")
    table = onnx_table(loaded.module, [torch.zeros(3)])
    assert len(loaded.data.examples) == 1  # nothing is open
    assert list(table.op) == ["input", "onnx.Mul", "onnx.Mul", "output"]
    assert table.weight_bytes[1] == 4
    assert len(set(node_ids(loaded.module.model))) == 3


def test_a_file_whose_nodes_stand_in_any_order_has_all_of_its_edges(tmp_path):
    """ONNX Runtime's quantizer appends its nodes at the end of the file."""
    write_classifier(tmp_path / "c.onnx")
    model = onnx.load(tmp_path / "c.onnx")
    nodes = [*model.graph.node][::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "turned.onnx")

    plain, turned = (
        onnx_table(load(tmp_path, name).module, [torch.zeros(2, 3, 8, 8)]) for name in ("c.onnx", "turned.onnx")
    )

    assert turned.op == plain.op
    assert len(turned.edge_source) == len(plain.edge_source)
