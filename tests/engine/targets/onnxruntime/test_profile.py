"""ONNX Runtime's own profile is read, and kernels of one name are told apart by the plan."""

import json

import pytest

pytest.importorskip("onnx")

from onnx import helper

from ace_studio.engine.targets.onnxruntime.profile import _kernel, _Profiled, _read_profile
from ace_studio.records.recipes.plan import Precision


def event(name, duration_us, **arguments):
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": duration_us, "args": arguments}


def test_the_times_of_a_node_are_collected_and_the_file_is_removed(tmp_path):
    path = tmp_path / "profile.json"
    types = {"provider": "CPUExecutionProvider", "input_type_shape": [{"float": [2, 3]}, {"uint8": [1]}]}
    path.write_text(json.dumps([event("conv", 10, **types), event("conv", 30, **types), {"cat": "Session"}]))
    found = _read_profile(path)["conv"]
    assert (found.provider, found.input_types, found.times_us) == (
        "CPUExecutionProvider",
        ["float", "uint8"],
        [10.0, 30.0],
    )
    assert not path.exists()


def test_the_median_time_counts_in_milliseconds():
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
    kernel = _kernel(node, ("conv2d",), _Profiled(times_us=[9.0, 1000.0, 2000.0]), {})
    assert kernel.latency_ms == 1.0
    assert kernel.is_arithmetic


@pytest.mark.parametrize(
    ("kind", "planned", "expected"),
    [
        ("MatMulIntegerToFloat", Precision.INT8_DYNAMIC, Precision.INT8_DYNAMIC),
        ("MatMulIntegerToFloat", Precision.INT8_STATIC, Precision.INT8_STATIC),
        ("MatMulNBits", Precision.INT4_WEIGHT, Precision.INT4_WEIGHT),
        ("Relu", Precision.INT8_STATIC, Precision.FP32),
    ],
)
def test_a_kernel_has_the_precision_that_it_computes_in(kind, planned, expected):
    node = helper.make_node(kind, ["x"], ["y"], name="one")
    assert _kernel(node, ("op",), _Profiled(input_types=["float"]), {"op": planned}).precision == expected


def test_reading_the_size_of_a_uint8_picture_is_no_int8_arithmetic():
    node = helper.make_node("Shape", ["frames"], ["size"], name="shape")
    profiled = _Profiled(input_types=["uint8"])
    assert _kernel(node, ("op",), profiled, {"op": Precision.FP32}).precision == Precision.FP32
