"""Python that opens an exported artifact and runs it as it was measured."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest

from ace_studio.records.results import RunStatus, TargetRun, Warning
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding
from ace_studio.session.generated_code.opening import opening_code


def run(target, artifact="artifacts/00/model.bin"):
    return TargetRun(target=target, status=RunStatus.OK, artifact=artifact)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "eager", "inductor", "aoti"])
def test_the_code_is_python_that_names_the_file(target):
    code = opening_code(run(target), "/it's here/model.bin", warnings=(), threads=2)
    ast.parse(code)
    assert '"/it\'s here/model.bin"' in code


@pytest.mark.parametrize(
    "said",
    [
        {"what": "Only with an option", "options": {"INFERENCE_PRECISION_HINT": "f32"}},
        {"what": 'Only with {"INFERENCE_PRECISION_HINT": "f32"}; else other'},  # as version 0.2.0 stored it
    ],
)
def test_the_options_that_a_warning_asks_for_are_set(said):
    warning = Warning(code="artifact-options", **said)
    code = opening_code(run("openvino"), "m.xml", warnings=(warning,), threads=1)
    assert 'options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}' in code


def test_there_is_no_code_for_a_folder_of_subgraphs():
    assert opening_code(run("onnxruntime", "artifacts/00"), "m", warnings=(), threads=1) == ""


@pytest.mark.parametrize(("low", "high", "refused"), [(3, 50, (2, 51)), (1, 50, (51,)), (3, None, (2,))])
def test_the_code_refuses_sizes_at_which_the_graph_was_not_proven(low, high, refused):
    dims = (
        DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=2, min=1),
        DimFinding(index=1, verdict=DimVerdict.DYNAMIC, size=9, min=low, max=high),
    )
    inputs = (InputFinding(name="a", dtype="float32", dims=()), InputFinding(name="x", dtype="float32", dims=dims))
    code = opening_code(run("onnxruntime"), "m.onnx", warnings=(), threads=1, inputs=inputs)
    start = code.index("if inputs[1]")
    checks = code[start : code.index("outputs = ")]

    def call(size):
        exec(checks, {"inputs": [None, SimpleNamespace(shape=(7, size))]})

    for size in refused:
        with pytest.raises(ValueError, match="must be "):
            call(size)
    for size in (3, 50):
        call(size)


@pytest.mark.parametrize(("order", "words"), [((0, 1, 2, 3), "x must be contiguous"), ((0, 2, 3, 1), "channels last")])
def test_the_code_refuses_memory_layouts_for_which_the_graph_was_not_proven(order, words):
    straight = np.zeros((2, 3, 4, 5), np.float32)
    given = {(0, 1, 2, 3): straight, (0, 2, 3, 1): np.zeros((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2)}
    dims = tuple(DimFinding(index=at, verdict=DimVerdict.STATIC, size=2 + at) for at in range(4))
    inputs = (InputFinding(name="x", dtype="float32", dims=dims, memory_order=order),)
    code = opening_code(run("onnxruntime"), "m.onnx", warnings=(), threads=1, inputs=inputs)
    checks = code[code.index("if not inputs[0]") : code.index("outputs = ")]
    exec(checks, {"inputs": [given.pop(order)]})
    with pytest.raises(ValueError, match=words):
        exec(checks, {"inputs": [*given.values()]})


def test_a_package_checks_its_inputs_and_gets_contiguous_ones():
    code = opening_code(run("aoti"), "m.pt2", warnings=(), threads=1)
    assert code.index("AOTI_RUNTIME_CHECK_INPUTS") < code.index("aoti_load_package")
    assert ".contiguous()" in code


def test_without_ranges_the_code_checks_nothing():
    inputs = (InputFinding(name="x", dtype="float32", dims=(DimFinding(index=0, verdict=DimVerdict.STATIC, size=2),)),)
    assert "raise" not in opening_code(run("openvino"), "m.xml", warnings=(), threads=1, inputs=inputs)


def test_the_code_runs_as_it_is_with_zeros_for_the_inputs():
    straight = DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=2, min=1)
    dims = (straight, *(DimFinding(index=at, verdict=DimVerdict.STATIC, size=size) for at, size in ((1, 3), (2, 4))))
    inputs = (
        InputFinding(name="ids", dtype="int64", dims=(straight,)),
        InputFinding(name="x", dtype="float32", dims=dims, memory_order=(0, 2, 1)),
    )
    code = opening_code(run("onnxruntime"), "m.onnx", warnings=(), threads=1, inputs=inputs)
    names = {}
    exec(code[code.index("import numpy") : code.index("outputs = ")], names)
    assert [(one.dtype.name, one.shape) for one in names["inputs"]] == [("int64", (2,)), ("float32", (2, 3, 4))]


def test_a_type_that_numpy_lacks_leaves_the_inputs_to_the_user():
    inputs = (InputFinding(name="x", dtype="bfloat16", dims=()),)
    assert "import numpy" not in opening_code(run("eager"), "m.pt2", warnings=(), threads=1, inputs=inputs)


def test_names_and_options_of_a_stranger_s_result_are_no_code():
    evil = '": ran(), "x\nran()\r#\u2028'
    inputs = (InputFinding(name=evil, dtype="float32", dims=()),)
    warning = Warning(code="artifact-options", what=evil, options={evil: evil})
    for target in ("onnxruntime", "openvino"):
        code = opening_code(run(target), "m.xml", warnings=(warning,), threads=1, inputs=inputs)
        called = [ast.unparse(one.func) for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Call)]
        assert "ran" not in called and called
