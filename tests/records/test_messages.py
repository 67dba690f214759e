"""Every message survives the channel, and nothing else is taken for one."""

from __future__ import annotations

import subprocess
import sys
import typing

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import (
    AnyEvent,
    AnyRequest,
    FileReport,
    JobFailed,
    ModelCaptured,
    Phase,
    Progress,
    RunRequest,
    decode_event,
    decode_request,
    encode_message,
)
from ace_studio.records.results import CaptureReport, Result, ResultStatus, decode_result, encode_result
from tests.records.any_recipe import recipes


@given(recipe=recipes())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_recipe_survives_the_channel(recipe):
    request = RunRequest(job="1", recipe=recipe, folder="/x", output="/y", trusted_sha256=("ab",), trust_all=True)
    assert decode_request(encode_message(request)) == request


def _sample(kind: type) -> object:
    """A value of the type: empty texts, zeros, no items, defaults where there are any."""
    info = msgspec.inspect.type_info(kind)
    plain: dict[type, object] = {
        msgspec.inspect.StrType: "t", msgspec.inspect.IntType: 1, msgspec.inspect.FloatType: 0.5,
        msgspec.inspect.BoolType: True, msgspec.inspect.VarTupleType: (), msgspec.inspect.DictType: {},
    }  # fmt: skip
    if isinstance(info, msgspec.inspect.EnumType):
        return next(iter(info.cls))
    if isinstance(info, msgspec.inspect.StructType):
        hints = typing.get_type_hints(info.cls)
        return info.cls(**{field.name: _sample(hints[field.name]) for field in info.fields if field.required})
    return plain[type(info)]


@pytest.mark.parametrize("kind", typing.get_args(AnyEvent), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_survives_the_channel(kind):
    event = _sample(kind)
    assert decode_event(encode_message(event)) == event


@pytest.mark.parametrize("kind", typing.get_args(AnyRequest), ids=lambda kind: kind.__name__)
def test_every_kind_of_request_survives_the_channel(kind):
    request = _sample(kind)
    assert decode_request(encode_message(request)) == request


def test_every_message_of_the_module_is_in_a_union():
    known = {*typing.get_args(AnyEvent), *typing.get_args(AnyRequest)}
    bases = {messages.Event, messages.Request}
    defined = {
        item
        for item in vars(messages).values()
        if isinstance(item, type) and issubclass(item, (messages.Event, messages.Request)) and item not in bases
    }
    assert defined == known


def test_a_graph_of_twenty_thousand_ops_survives():
    rows = 20_000
    graph = GraphTable(
        op_id=tuple(f"op_{row}" for row in range(rows)),
        kind=(OpKind.OP,) * rows,
        op=("aten.add.Tensor",) * rows,
        module=("a.b",) * rows,
        shape=("s0x3",) * rows,
        dtype=("float32",) * rows,
        device=("cpu",) * rows,
        file=(0,) * rows,
        line=tuple(range(rows)),
        flops=(10**12,) * rows,
        weight_bytes=(0,) * rows,
        output_bytes=(4,) * rows,
        edge_source=tuple(range(rows - 1)),
        edge_target=tuple(range(1, rows)),
    )
    event = ModelCaptured(
        job="1", fingerprint="f", capture=CaptureReport(rung="export", ops=rows, seconds=1), graph=graph
    )
    assert decode_event(encode_message(event)) == event
    assert graph.op_count == len(graph) == rows


@given(st.binary(max_size=200))
def test_rubbish_is_refused_and_never_taken_for_a_message(payload):
    for decode in (decode_event, decode_request):
        with pytest.raises((msgspec.DecodeError, msgspec.ValidationError)):
            decode(payload)


def test_an_event_is_not_a_request():
    with pytest.raises(msgspec.ValidationError):
        decode_request(encode_message(Progress(phase=Phase.LOAD)))


def test_problems_keep_their_codes():
    event = JobFailed(job="1", problems=(Problem(code=ErrorCode.UNTRUSTED, what="x"),))
    assert decode_event(encode_message(event)).problems[0].code is ErrorCode.UNTRUSTED


def test_a_result_survives_its_file():
    result = Result(status=ResultStatus.OK, fingerprint="f", environment={"cores": 2, "torch": "2", "gpu": None})
    text = encode_result(result)
    assert text.endswith(b"}\n")
    assert decode_result(text) == result


def test_the_records_import_neither_torch_nor_qt():
    names = ["errors", "graph", "recipes.plan", "recipes.file", "messages", "results", "safe_file", "tensors"]
    code = "import sys\n" + "".join(f"import ace_studio.records.{name}\n" for name in names)
    code += "print([m for m in sys.modules if m.partition('.')[0] in ('torch', 'PySide6', 'numpy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_report_defaults_to_nothing_found():
    report = FileReport(path="a", kind="onnx", label="", sha256="", size_bytes=0, trust="inspect")
    assert (report.entries, report.tensors, report.would_run) == ((), (), ())
