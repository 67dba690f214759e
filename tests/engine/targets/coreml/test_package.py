"""What a Core ML package says of itself, and what is noticed when one is not as it was written."""

import shutil

import msgspec
import pytest

from ace_studio.engine.targets.coreml.package import Operation, Ports, check_package, computed_in, ports_of, read_spec
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.targets.coreml.conftest import WEIGHTS, build, needs_coreml, operations


@pytest.mark.parametrize(
    ("operation", "precision"),
    [
        (Operation("linear", ("pair", "weight"), ("y",), "FLOAT32"), Precision.INT8_STATIC),
        (Operation("linear", ("x", "weight"), ("y",), "FLOAT16"), Precision.INT8_WEIGHT),
        (Operation("add", ("pair", "pair"), ("y",), "FLOAT32"), Precision.INT8_STATIC),
        (Operation("add", ("pair", "x"), ("y",), "FLOAT16"), Precision.FP16),
        (Operation("relu", ("x",), ("y",), "FLOAT32"), Precision.FP32),
        (Operation("add", ("x", "y"), ("z",), "FLOAT32"), Precision.FP32),
        (Operation("gather", ("x", "number"), ("y",), "INT32"), None),
    ],
)
def test_what_an_operation_reads_says_what_it_computes_in(operation, precision):
    before = (
        Operation("dequantize", ("q", "number"), ("pair",), "FLOAT32"),
        Operation("constexpr_affine_dequantize", (), ("weight",), "FLOAT32"),
        Operation("const", (), ("number",), "FLOAT32"),
    )
    makers = {one.outputs[0]: one for one in before}
    assert computed_in(operation, makers, takes_pairs=True) == precision
    assert computed_in(operation, makers, takes_pairs=False) != Precision.INT8_STATIC


@needs_coreml
@pytest.mark.slow
def test_the_package_says_what_it_takes_and_gives(package):
    spec = read_spec(package)
    ports = ports_of(spec, name=package.name)
    assert [(one.dtype, one.sizes) for one in ports.takes] == [("float32", ((1, 64), (16, 16)))]
    assert [(one.dtype, one.sizes) for one in ports.gives] == [("float32", (None, (4, 4)))]
    assert [one.name for one in spec.description.input] == [one.name for one in ports.takes]
    assert not list(package.glob("*executorch*"))


@needs_coreml
@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "change", "words"),
    [
        ("takes", {"dtype": "int64"}, "INT32"),
        ("takes", {"sizes": [[1, 9], [16, 16]]}, "(1, 9)"),
        ("gives", {"sizes": [None, [5, 5]]}, "[None, 5]"),
        ("gives", {"dtype": "float16"}, "as float16"),
    ],
)
def test_a_package_with_another_interface_is_refused(package, side, change, words):
    spec = read_spec(package)
    told = msgspec.to_builtins(ports_of(spec, name=""))
    told[side] = [{**told[side][0], **change}]
    with pytest.raises(AceError) as caught:
        check_package(package, spec, msgspec.convert(told, Ports))
    assert caught.value.problem.code is ErrorCode.WRONG_CAPTURE and words in caught.value.problem.why


@needs_coreml
@pytest.mark.slow
def test_lost_weights_and_other_operations_are_noticed(tmp_path):
    path = build("text_model", Plan(), tmp_path).save(tmp_path)
    spec = read_spec(path)
    ports = ports_of(spec, name="")
    changed = type(spec)()
    changed.CopyFrom(spec)
    del operations(changed)[-1]
    with pytest.raises(AceError, match="other operations"):
        check_package(path, changed, ports)
    (path / WEIGHTS).write_bytes(b"")
    with pytest.raises(AceError, match="shorter or missing"):
        check_package(path, spec, ports)
    shutil.rmtree(path / "Data")
    with pytest.raises(AceError, match="cannot read"):
        read_spec(path)
