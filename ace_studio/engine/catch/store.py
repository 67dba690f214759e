"""Writes caught calls to files, and as rows of the shape table."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from safetensors.torch import save
from torch import nn

from ace_studio.engine.catch.recorder import KeptCall
from ace_studio.engine.examples.caught import CaughtCall, CaughtFiles, CaughtInputs, CaughtValue
from ace_studio.engine.examples.leaves import Parameters, dtype_name, forward_parameters, named_leaves
from ace_studio.engine.flow import Example
from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.safe_file import write_atomically
from ace_studio.records.tensors import TensorSpec


def store_calls(kept: Sequence[KeptCall], *, module: nn.Module, script: Path, output: Path) -> CaughtFiles:
    """Write the calls; ``output`` is a folder or the name of the safetensors file.

    Raises: AceError(USAGE) if the files cannot be written.
    """
    files = CaughtFiles.at(output)
    pairs = ((number, name, one) for number, call in enumerate(kept) for name, one in call.tensors.items())
    tensors = {f"{number}.{name.removeprefix('call.')}": one for number, name, one in pairs}
    calls = [_renamed(call.call, str(number), script) for number, call in enumerate(kept)]
    content = CaughtInputs(module=type(module).__qualname__, tensors=files.tensors.name, calls=calls)
    what = f"The caught inputs cannot be written to {output}"
    remedy = "Name a folder that you may write to, with enough room."
    with explained(ErrorCode.USAGE, what, remedy=remedy, where=output):
        files.structure.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(files.tensors, save(tensors))
        text = msgspec.json.format(msgspec.json.encode(content), indent=1)
        write_atomically(files.structure, text + b"\n")
    return files


def _renamed(call: CaughtCall, number: str, script: Path) -> CaughtCall:
    def part(one: CaughtValue) -> CaughtValue:
        tensor = None if one.tensor is None else f"{number}.{one.tensor.removeprefix('call.')}"
        items = None if one.items is None else [part(item) for item in one.items]
        # A class of the script is found again under the name by which its file is imported.
        kind = one.kind.replace("__main__:", f"{script.stem}:", 1) if one.kind.startswith("__main__:") else one.kind
        return msgspec.structs.replace(one, tensor=tensor, items=items, kind=kind)

    return CaughtCall(
        args=[part(one) for one in call.args], kwargs={name: part(one) for name, one in call.kwargs.items()}
    )


def caught_rows(kept: Sequence[KeptCall], *, module: nn.Module, tensors: Path) -> tuple[dict[str, TensorSpec], ...]:
    """The calls as rows of the shape table; empty if they hold what no row can: plain values, or other inputs each."""
    parameters = forward_parameters(module)
    rows = tuple(_row(call, f"{tensors}:{number}", parameters) for number, call in enumerate(kept))
    return rows if rows and all(row and set(row) == set(rows[0]) for row in rows) else ()


def _row(call: KeptCall, prefix: str, parameters: Parameters) -> dict[str, TensorSpec]:
    names = {name.removeprefix("call."): tensor for name, tensor in call.tensors.items()}
    example = Example(
        args=tuple(_names_of(part) for part in call.call.args),
        kwargs={name: _names_of(part) for name, part in call.call.kwargs.items()},
    )
    row = {}
    for leaf in named_leaves(example, parameters):
        if not isinstance(leaf.value, _Named):
            if leaf.value is None:
                continue
            return {}
        tensor = names[leaf.value.name]
        row[leaf.name] = TensorSpec(
            shape=tuple(tensor.shape), dtype=dtype_name(tensor), values=f"{prefix}.{leaf.value.name}"
        )
    return row


class _Named:
    """Stands for a tensor of the file."""

    def __init__(self, name: str) -> None:
        self.name = name


def _names_of(part: CaughtValue) -> object:
    if part.tensor is not None:
        return _Named(part.tensor.removeprefix("call."))
    if part.items is None:
        return part.dtype or part.number or part.value
    items = [_names_of(item) for item in part.items]
    return items if part.keys is None else dict(zip(map(str, part.keys), items, strict=True))
