"""Writes captured graphs as JSON and reads them, with torch's private serializer.

``torch.export.save`` is not used, because it writes every weight, and pickles.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.sizes import program_guards


def program_to_json(program: ExportedProgram) -> bytes:
    """The graph of a program without tensors, as JSON. Raises whatever torch does for a graph that it cannot write."""
    from torch._export.serde import serialize as serde  # noqa: PLC0415 - takes long to load, and is not always needed

    private: Any = serde
    with (
        # torch sorts a copy only to check that it can, which takes four fifths of the time.
        replaced_attribute(private, "canonicalize", lambda written, *_: written),
        # No tensors; arguments that say so exist since torch 2.12.
        replaced_attribute(private, "serialize_torch_artifact", lambda *_: b""),
    ):
        written = private.ExportedProgramSerializer().serialize(program)
    content: bytes = private._to_json_bytes(written.exported_program)
    return content


def program_from_json(
    content: bytes, *, state: Mapping[str, Tensor], constants: Mapping[str, Tensor], example: Any
) -> ExportedProgram:
    """The program of `program_to_json` with the given tensors. Raises whatever torch does for damaged content.

    Its expressions are evaluated as Python: the caller must have checked them.
    """
    from torch._export.serde import serialize as serde  # noqa: PLC0415 - as above

    private: Any = serde
    stored = private._bytes_to_dataclass(private.ExportedProgram, content)
    program = serde.ExportedProgramDeserializer().deserialize(stored, dict(state), dict(constants), example)
    program.graph.output_node().meta.pop("val", None)  # a traced graph has none there
    return program


def reading_of(program: ExportedProgram) -> str:
    """Digest of a program as text; equal for a program that was written and read again."""
    places = [
        f"{node.meta.get('nn_module_stack') or ''}{node.meta.get('stack_trace') or ''}" for node in program.graph.nodes
    ]
    parts = (str(program.graph), str(program.graph_signature), str(program_guards(program)), str(places))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
