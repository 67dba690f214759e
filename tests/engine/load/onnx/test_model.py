"""An ONNX file opens as a module that ONNX Runtime computes, and its graph becomes the table."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
    pytest.skip("onnx or onnxruntime is not installed", allow_module_level=True)

import onnx
from onnx import TensorProto, helper

from ace_studio.engine.load import OnnxModule, inspect_file, node_ids, onnx_table
from ace_studio.engine.load.onnx.model import python_names
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import OpKind
from tests.engine.load.onnx_samples import numbers, write_classifier, write_embedding
from tests.engine.load.samples import load, problem_of


def test_the_module_computes_what_the_file_says(tmp_path):
    write_embedding(tmp_path / "m.onnx")
    loaded = load(tmp_path, "m.onnx", trusted=False)  # nothing in it runs but operators
    ids, mask = torch.tensor([[3, 7, 1]]), torch.tensor([[1, 0, 1]])

    found = loaded.module(ids, attention_mask=mask)

    wanted = numbers(200, 6)[[3, 7, 1]] * np.array([[1], [0], [1]], dtype=np.float32)
    assert set(found) == {"kept", "pooled"}
    np.testing.assert_allclose(found["kept"][0], wanted, rtol=1e-6)
    np.testing.assert_allclose(found["pooled"][0], wanted.sum(0), rtol=1e-5)
    assert loaded.frontend == "onnx"


def test_examples_follow_from_the_sizes_that_the_file_leaves_open(tmp_path):
    write_embedding(tmp_path / "m.onnx")
    loaded = load(tmp_path, "m.onnx")
    ids, masks = zip(*(example.tensors() for example in loaded.data.examples), strict=True)
    assert [tuple(tensor.shape) for tensor in ids] == [(1, 16), (2, 24)]
    assert all(bool((mask == 1).all()) for mask in masks)
    for example in loaded.data.examples:
        example.call(loaded.module)
    write_classifier(tmp_path / "c.onnx")
    assert [tuple(one.tensors()[0].shape) for one in load(tmp_path, "c.onnx").data.examples] == [
        (1, 3, 8, 8),
        (2, 3, 8, 8),
    ]


def test_what_a_file_takes_and_holds_can_be_seen_without_running_it(tmp_path):
    report = inspect_file(write_embedding(tmp_path / "m.onnx"))
    assert (report.kind, report.trust) == ("onnx", "data")
    assert "input input.ids: int64 batchxlength" in report.notes
    assert {tensor.name: tensor.shape for tensor in report.tensors}["table"] == (200, 6)
    assert report.inputs[1]["attention_mask"].values == "ones"
    assert report.inputs[1]["input_ids"].shape == (2, 24)


def test_names_become_such_that_python_can_write_them():
    assert python_names(["input.ids", "input_ids", "1", "class", ""]) == [
        "input_ids",
        "input_ids_",
        "_1",
        "_class",
        "input",
    ]


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


def test_wrong_inputs_are_told_in_a_sentence(tmp_path):
    write_classifier(tmp_path / "c.onnx")
    module = load(tmp_path, "c.onnx").module
    for args, said in (((), "lacks the input x"), ((torch.zeros(1, 9, 8, 8),), "cannot run c.onnx on these inputs")):
        with pytest.raises(AceError) as caught:
            module(*args)
        assert caught.value.problem.code is ErrorCode.BAD_INPUT
        assert said in caught.value.problem.what


def test_damaged_and_unusable_files_say_what_is_wrong(tmp_path):
    path = write_classifier(tmp_path / "c.onnx")
    path.write_bytes(path.read_bytes()[:-40])
    assert problem_of(tmp_path, "c.onnx").code is ErrorCode.BAD_FILE
    model = onnx.load(write_classifier(path))
    model.graph.node[0].op_type = "Konv"
    onnx.save(model, path)
    problem = problem_of(tmp_path, "c.onnx")
    assert "refused by ONNX Runtime" in problem.what
    assert "Konv" in problem.why
    model = onnx.load(write_classifier(path))
    onnx.save(model, path, save_as_external_data=True, location="c.data", size_threshold=0)
    assert [file.name for file in load(tmp_path, "c.onnx").files] == ["c.onnx", "c.data"]
    (tmp_path / "c.data").unlink()
    assert "another file" in problem_of(tmp_path, "c.onnx").what


def test_a_file_that_takes_texts_is_refused(tmp_path):
    value = [helper.make_tensor_value_info(name, TensorProto.STRING, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    problem = problem_of(tmp_path, "m.onnx")
    assert problem.code is ErrorCode.UNSUPPORTED
    assert inspect_file(tmp_path / "m.onnx").inputs == ()
