"""Example calls as files, for another process to make the same calls: tensors in one file, their nesting as text."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import Example
from ace_studio.records.safe_file import written_beside


class CannotLeaveError(Exception):
    """Something that another process cannot use; the message is the second half of a sentence that says why."""


class StoredCall(msgspec.Struct, frozen=True, kw_only=True):
    """The nesting of one call; its tensors are in a file of `write_tensors`."""

    nesting: str
    """torch's description of the nesting, as JSON."""
    plain: dict[int, bool | int | float | str | None]
    """Position among the leaves -> value, for the leaves that are not tensors."""


def store_call(example: Example) -> StoredCall:
    """The call without its tensors. Raises: CannotLeaveError for a value or a nesting that cannot be written."""
    leaves, spec = pytree.tree_flatten((example.args, dict(example.kwargs)))
    plain = {at: leaf for at, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
    if any(not isinstance(leaf, bool | int | float | str | None) for leaf in plain.values()):
        raise CannotLeaveError("an argument is neither a tensor nor a plain value")
    try:
        return StoredCall(nesting=pytree.treespec_dumps(spec), plain=plain)
    except Exception as error:  # torch and the classes of the user's containers raise anything here
        raise CannotLeaveError("the arguments are nested in a type of the model's own") from error


def stored_example(call: StoredCall, tensors: Sequence[Tensor]) -> Example:
    """The call of `store_call` with these tensors, in the order of `Example.tensors`."""
    waiting = iter(tensors)
    spec = pytree.treespec_loads(call.nesting)
    leaves = [call.plain[at] if at in call.plain else next(waiting) for at in range(spec.num_leaves)]
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    return Example(args=args, kwargs=kwargs)


def write_tensors(path: Path, calls: Sequence[Sequence[Tensor]]) -> None:
    """The tensors of several calls in one file, under ``call.position``."""
    tensors = {
        f"{index}.{leaf}": tensor.detach().cpu().contiguous().clone()
        for index, flat in enumerate(calls)
        for leaf, tensor in enumerate(flat)
    }
    with written_beside(path) as private:
        save_file(tensors, private)


def read_tensors(path: Path, calls: int) -> list[list[Tensor]]:
    """What `write_tensors` wrote, for so many calls (one without any tensor leaves no trace in the file)."""
    stored = load_file(path)
    places: list[list[int]] = [[] for _ in range(calls)]
    for name in stored:
        index, _, leaf = name.partition(".")
        places[int(index)].append(int(leaf))
    return [[stored[f"{index}.{leaf}"] for leaf in sorted(leaves)] for index, leaves in enumerate(places)]
