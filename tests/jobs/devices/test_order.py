"""What is sent: the measured call, or inputs that are made up in its sizes."""

import struct

import pytest

from ace_studio.jobs.devices.order import make_order, numbers_as_bytes, read_stored
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import INPUTS_NAME
from tests.jobs.devices.runs import finding, result_of, run_of


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "model.onnx").write_bytes(b"model")
    (tmp_path / "artifacts" / "model.onnx.data").write_bytes(b"weights")
    return tmp_path


def order_of(folder, **changes):
    return make_order(result_of(run_of(artifact="artifacts/model.onnx"), **changes), folder)


def test_the_call_that_was_measured_travels(folder):
    torch = pytest.importorskip("torch")
    stored_calls = pytest.importorskip("ace_studio.engine.examples.stored_calls")
    tensors = [torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.tensor([True]), torch.ones(1).bfloat16()]
    stored_calls.write_tensors(folder / INPUTS_NAME, [tensors])
    given = order_of(folder, inputs=(finding(memory_order=(1, 0)),)).inputs
    assert [(one.dtype, one.shape, one.order) for one in given] == [
        ("float32", (2, 3), (1, 0)), ("bool", (1,), ()), ("bfloat16", (1,), ())
    ]  # fmt: skip
    assert given[0].content == struct.pack("<6f", *range(6)) and given[2].content == b"\x80\x3f"


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x02" + b"\0" * 7 + b"{}x"])
def test_a_damaged_file_of_inputs_is_not_used(folder, content):
    (folder / INPUTS_NAME).write_bytes(content)
    try:
        assert read_stored(content) == []
    except (ValueError, KeyError):
        assert order_of(folder).inputs[0].shape == (2, 64)


def test_inputs_are_made_up_in_the_measured_size(folder):
    found = order_of(folder, measured_input="1x64").inputs
    assert found[0].shape == (1, 64) and len(found[0].content) == 4 * 64
    assert order_of(folder, measured_input="1x64, 3").inputs[0].shape == (2, 64)
    assert order_of(folder).inputs[0].content == order_of(folder).inputs[0].content


def test_numbers_of_which_nothing_is_known_fit_every_table(folder):
    (given,) = order_of(folder, inputs=(finding("ids", "int64", (1, 500)),)).inputs
    assert set(struct.unpack("<500q", given.content)) == {0, 1}


def test_the_recipe_says_which_values(folder):
    recipe = (
        'format = 1\n[model]\nsource = "m.py"\n[measure]\nrounds = 7\n[[inputs.rows]]\n'
        'ids = { shape = [1, 4], dtype = "int64", values = "range" }\n'
        'mask = { shape = [1, 4], dtype = "int64", values = "ones" }\n'
    )
    from msgspec.structs import replace

    inputs = (finding("ids", "int64", (1, 4)), finding("mask", "int64", (1, 4)))
    result = replace(result_of(run_of(artifact="artifacts/model.onnx"), inputs=inputs), recipe=recipe)
    order = make_order(result, folder)
    assert order.rounds == 7
    assert [struct.unpack("<4q", one.content) for one in order.inputs] == [(0, 1, 2, 3), (1, 1, 1, 1)]


def test_an_artifact_goes_with_the_files_beside_it(folder):
    (artifact,) = order_of(folder, onnxruntime="1.2.3+local", threads=3).artifacts
    assert [one.name for one in artifact.files] == ["model.onnx", "model.onnx.data"]
    assert artifact.wanted["onnxruntime"] == "onnxruntime==1.2.3" and artifact.runtime == "onnxruntime"


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data"])
def test_what_a_link_beside_the_artifact_leads_to_is_not_sent(folder, tmp_path_factory, name):
    key = tmp_path_factory.mktemp("home") / "key"
    key.write_text("secret")
    (folder / "artifacts" / name).unlink()
    (folder / "artifacts" / name).symlink_to(key)
    order = order_of(folder)
    assert order.artifacts == ()
    assert [one.code for one in order.problems.values()] == [ErrorCode.BAD_FILE]


def test_a_type_that_cannot_be_made_up_is_named():
    with pytest.raises(AceError, match="float8_e4m3fn") as caught:
        numbers_as_bytes([1.0], "float8_e4m3fn", 4)
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED


@pytest.mark.parametrize(
    ("dtype", "size"), [("bfloat16", 2), ("float16", 2), ("bool", 1), ("uint8", 1), ("float64", 8)]
)
def test_numbers_are_repeated_until_there_are_enough(dtype, size):
    assert len(numbers_as_bytes([1.0, 0.0, 3.0], dtype, 10)) == 10 * size
    assert numbers_as_bytes([1.0], dtype, 0) == b""


@pytest.mark.parametrize("target", ["eager", "inductor", "aoti"])
def test_an_artifact_that_holds_code_is_asked_about_and_data_is_not(folder, target):
    result = result_of(run_of(target, artifact="artifacts/model.onnx"), run_of(artifact="artifacts/model.onnx"))
    refused = make_order(result, folder)
    assert refused.problems[0].code is ErrorCode.UNTRUSTED and refused.problems[0].exit_code == 5
    assert [one.index for one in refused.artifacts] == [1] and "--trust" in refused.problems[0].remedy
    asked = []
    allowed = make_order(result, folder, is_trusted=lambda sha256: not asked.append(sha256))
    assert [one.index for one in allowed.artifacts] == [0, 1]
    assert asked == [allowed.artifacts[0].files[0].sha256] and refused.problems[0].details == f"sha256:{asked[0]}"


@pytest.mark.parametrize("sizes", [(10**6, 10**6), (-1, 4)])
def test_sizes_that_somebody_wrote_into_a_result_take_no_memory(folder, sizes):
    with pytest.raises(AceError, match="cannot be made up") as caught:
        order_of(folder, inputs=(finding(sizes=sizes),))
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_a_result_asks_for_no_more_threads_than_a_machine_may_have(folder):
    assert order_of(folder, threads=2_000_000).threads == 1024
