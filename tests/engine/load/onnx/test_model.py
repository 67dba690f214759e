"""An ONNX file opens as a module that ONNX Runtime computes, and its graph becomes the table."""

import importlib.util

import numpy as np
import pytest
import torch

if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
    pytest.skip("onnx or onnxruntime is not installed", allow_module_level=True)

import onnx
from onnx import TensorProto, helper

from ace_studio.engine.flow import Example
from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.onnx.model import OnnxModule, python_names
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.onnx_samples import numbers, write_classifier, write_embedding, write_old_classifier
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


def test_called_bare_the_session_gives_the_same_numbers(tmp_path):
    write_embedding(tmp_path / "m.onnx")
    module = load(tmp_path, "m.onnx", trusted=False).module
    example = Example(args=(torch.tensor([[3, 7, 1]]),), kwargs={"attention_mask": torch.tensor([[1, 0, 1]])})
    kept, pooled = module.bare(example)()
    found = example.call(module)
    np.testing.assert_array_equal(found["kept"], kept)
    np.testing.assert_array_equal(found["pooled"], pooled)


@pytest.mark.parametrize(("dtype", "is_rounded"), [("float32", False), ("float16", True), ("int8", True)])
def test_a_file_says_whether_its_weights_are_rounded(tmp_path, dtype, is_rounded):
    weight = onnx.numpy_helper.from_array(np.ones(3, dtype), "w")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = (helper.make_tensor_value_info(name, kind, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    assert OnnxModule(helper.make_model(graph), tmp_path).is_rounded is is_rounded


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


def test_weights_that_an_old_file_lists_among_its_inputs_are_none(tmp_path):
    report = inspect_file(write_old_classifier(tmp_path / "old.onnx"))
    assert [note for note in report.notes if note.startswith("input")] == ["input x: float32 Nx3x8x8"]
    write_classifier(tmp_path / "new.onnx", opset=9)
    old, new = (load(tmp_path, name).module for name in ("old.onnx", "new.onnx"))
    assert [value.name for value in old.inputs] == ["x"]
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(old(x), new(x))


def test_names_become_such_that_python_can_write_them():
    assert python_names(["input.ids", "input_ids", "1", "class", ""]) == [
        "input_ids",
        "input_ids_",
        "_1",
        "_class",
        "input",
    ]


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
    assert "operator that ONNX Runtime does not know" in problem.what
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
