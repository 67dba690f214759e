"""Facts about an ONNX file, read without the onnx package."""

import pytest

from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.onnx.header import looks_like_onnx, read_facts
from ace_studio.records.errors import AceError, ErrorCode


def test_onnx_is_counted_without_the_onnx_package(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    value = helper.make_tensor_value_info("x", 1, [1])
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_value_info("z", 1, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="me")
    onnx.save(model, tmp_path / "m.onnx")
    (tmp_path / "nameless").write_bytes((tmp_path / "m.onnx").read_bytes())
    report = inspect_file(tmp_path / "m.onnx")
    assert (report.kind, report.trust) == ("onnx", "data")
    assert "2 ops, ai.onnx 18" in report.notes[0]
    assert "2 x Relu" in report.notes
    assert inspect_file(tmp_path / "nameless").kind == "onnx"


FILE = b"\x08\x08" + b"\x12\x02me" + b"\x3a\x08\x0a\x06\x22\x04Relu" + b"\x42\x02\x10\x12"
"""IR version 8, a producer, a graph with one node, operator set 18."""


def test_facts_are_read_from_the_bytes(tmp_path):
    (tmp_path / "m").write_bytes(FILE)
    facts = read_facts(tmp_path / "m")
    assert (facts.ir_version, facts.producer, facts.opsets, facts.op_counts) == (8, "me", ("ai.onnx 18",), {"Relu": 1})
    assert looks_like_onnx(tmp_path / "m", FILE)


@pytest.mark.parametrize("length", range(1, len(FILE)))
def test_a_file_that_is_cut_anywhere_is_refused_or_has_fewer_facts(tmp_path, length):
    (tmp_path / "m").write_bytes(FILE[:length])
    with pytest.raises(AceError) as caught:
        read_facts(tmp_path / "m")
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_other_bytes_are_not_onnx(tmp_path):
    for content in (b"", b"\x08", b"hello", b"\x08\xff" * 9, b"\x08\x08\x7f"):
        (tmp_path / "m").write_bytes(content or b" ")
        assert not looks_like_onnx(tmp_path / "m", content)
