"""Reads facts about an ONNX file from its protobuf bytes, without the onnx package and without its weights."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ace_studio.engine.load.sniff import bad_file

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_TEXT = 200
_IR_VERSION, _PRODUCER, _GRAPH, _OPSET = 1, 2, 7, 8
"""Field numbers of ONNX's ModelProto; below those of GraphProto, NodeProto and OperatorSetIdProto."""
_GRAPH_NODE, _NODE_OP_TYPE, _OPSET_DOMAIN, _OPSET_VERSION = 1, 4, 1, 2


@dataclass(frozen=True)
class OnnxFacts:
    """Facts in an ONNX file."""

    ir_version: int
    producer: str
    opsets: tuple[str, ...]
    """``ai.onnx 18`` and so on."""
    op_counts: dict[str, int]
    """Operator -> its count in the main graph."""


class _MalformedError(ValueError):
    pass


def looks_like_onnx(path: Path, head: bytes) -> bool:
    """Whether the file is named ``.onnx``, or begins with an IR version and can be read as ONNX."""
    if path.suffix == ".onnx":
        return True
    if head[:1] != b"\x08" or len(head) < 2 or head[1] > 20:
        return False
    try:
        facts = _read_facts(path)
    except (_MalformedError, OSError):
        return False
    return bool(facts.opsets)


def read_facts(path: Path) -> OnnxFacts:
    """Read the facts. Raises: AceError(BAD_FILE) if it is no ONNX file or is cut short."""
    try:
        facts = _read_facts(path)
    except (_MalformedError, OSError) as error:
        raise _damaged(path, str(error)) from error
    if not facts.opsets:
        raise _damaged(path, "it names no operator set")
    return facts


def _damaged(path: Path, why: str) -> Exception:
    return bad_file(path, "is a damaged or incomplete ONNX file", why=why, remedy="export or download it again")


def _read_facts(path: Path) -> OnnxFacts:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        whole = range(len(content))
        ir_version, producer, opsets, counts = 0, "", [], dict[str, int]()
        for field, value in _fields(content, whole):
            if field == _IR_VERSION and isinstance(value, int):
                ir_version = value
            elif field == _PRODUCER:
                producer = _text(content, value)
            elif field == _OPSET and isinstance(value, range):
                opsets.append(_opset(content, value))
            elif field == _GRAPH and isinstance(value, range):
                _count_ops(content, value, counts)
    return OnnxFacts(ir_version, producer, tuple(opsets), counts)


def _count_ops(content: mmap.mmap, graph: range, counts: dict[str, int]) -> None:
    for field, node in _fields(content, graph):
        if field == _GRAPH_NODE and isinstance(node, range):
            for inner, value in _fields(content, node):
                if inner == _NODE_OP_TYPE:
                    name = _text(content, value)
                    counts[name] = counts.get(name, 0) + 1


def _opset(content: mmap.mmap, span: range) -> str:
    domain, version = "ai.onnx", 0
    for field, value in _fields(content, span):
        if field == _OPSET_DOMAIN:
            domain = _text(content, value) or domain
        elif field == _OPSET_VERSION and isinstance(value, int):
            version = value
    return f"{domain} {version}"


def _text(content: mmap.mmap, value: int | range) -> str:
    if isinstance(value, int):
        raise _MalformedError("a number stands where a text must")
    return content[value.start : min(value.stop, value.start + _LONGEST_TEXT)].decode("utf-8", "replace")


def _fields(content: mmap.mmap, span: range) -> Iterator[tuple[int, int | range]]:
    """Yield number and value of each field of a message; for texts and messages, their range of bytes."""
    position = span.start
    while position < span.stop:
        key, position = _varint(content, position, span.stop)
        field, wire = key >> 3, key & 7
        value: int | range
        if wire == _VARINT:
            value, position = _varint(content, position, span.stop)
        elif wire == _BYTES:
            length, position = _varint(content, position, span.stop)
            value = range(position, position + length)
            position += length
        elif wire in (_FIXED32, _FIXED64):
            value = 0
            position += 4 if wire == _FIXED32 else 8
        else:
            raise _MalformedError("its bytes are no protobuf message")
        if position > span.stop or field == 0:
            raise _MalformedError("it breaks off in the middle of a field")
        yield field, value


def _varint(content: mmap.mmap, position: int, stop: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= stop:
            raise _MalformedError("it breaks off in the middle of a number")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _MalformedError("a number in it never ends")
