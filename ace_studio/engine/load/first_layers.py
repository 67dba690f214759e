"""Proposes example inputs for a module that came without any: by its first layer, tried until one runs."""

import inspect
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from ace_studio.engine.flow.module_state import state_put_back
from ace_studio.engine.load.proposals import ProposedInput, ProposedRow, examples_of
from ace_studio.records.tensors import ValueSource

_BATCHES = (1, 2)
_SIDES = (224, 32, 28, 64, 96, 128, 256, 16, 8, 48, 160, 192, 299, 384, 512)
"""Sides of pictures, the usual ones of data sets and of pretrained models first."""
_LENGTHS = (128, 64, 16, 32, 100, 256, 512, 1024, 8_000, 16_000)
_FRAMES, _FRAME_SIDE = 16, 112
_TOKENS = 16
_MASKS = ("mask",)


class Proposal(NamedTuple):
    """What was found by trying."""

    rows: tuple[ProposedRow, ...] = ()
    """Two rows of different batches, or one if the model takes no other batch; none if nothing was found that runs."""
    refused: ProposedRow = ()
    """The likeliest inputs that forward raised an error for; empty if there are rows, or if nothing was tried."""
    error: Exception | None = None
    """What it raised for them."""


def propose_rows(module: nn.Module) -> Proposal:
    """Inputs that the module runs with. It is run with each proposal, so its code must be trusted."""
    names = _required(module)
    first = _first_layer(module)
    if not names or first is None:
        return Proposal()
    likeliest = Proposal()
    for shape, below in _shapes(first):
        one, other = (_row(names, (batch, *shape), below) for batch in _BATCHES)
        error = _error_with(one, module)
        if error is None:
            return Proposal((one,) if _error_with(other, module) else (one, other))
        if likeliest.error is None:
            likeliest = Proposal(refused=one, error=error)
    return likeliest


def _row(names: list[str], shape: tuple[int, ...], below: int) -> ProposedRow:
    """All inputs of one shape: integers below a limit if there is one, masks of ones, else random numbers."""
    return tuple(
        ProposedInput(
            name,
            shape,
            dtype=torch.int64 if below else torch.float32,
            values=ValueSource.ONES if any(word in name for word in _MASKS) else ValueSource.RANDOM,
            below=2 if "type" in name else below,
        )
        for name in names
    )


def _shapes(first: nn.Module) -> Iterator[tuple[tuple[int, ...], int]]:
    """Shapes without the batch, and the limit of integers, that a first layer takes; the likeliest first."""
    match first:
        case nn.Embedding():
            yield (_TOKENS,), first.num_embeddings
            yield from (((length,), first.num_embeddings) for length in _LENGTHS)
        case nn.Conv1d():
            yield from (((first.in_channels, length), 0) for length in _LENGTHS)
            yield from (((length,), 0) for length in _LENGTHS)
        case nn.Conv2d():
            yield from (((first.in_channels, side, side), 0) for side in _SIDES)
            yield from (((side, side), 0) for side in _SIDES)
        case nn.Conv3d():
            yield (first.in_channels, _FRAMES, _FRAME_SIDE, _FRAME_SIDE), 0
        case nn.Linear():
            yield (first.in_features,), 0
            yield (_TOKENS, first.in_features), 0
            yield from (((1, side, side), 0) for side in _SIDES if side * side == first.in_features)
            yield from (((3, side, side), 0) for side in _SIDES if 3 * side * side == first.in_features)
        case nn.RNNBase():
            yield (_TOKENS, first.input_size), 0
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            yield (first.num_features,), 0
            yield from (((first.num_features, side, side), 0) for side in _SIDES)
        case nn.LayerNorm():
            yield tuple(first.normalized_shape), 0
            yield (_TOKENS, *first.normalized_shape), 0
        case _:
            return


def _first_layer(module: nn.Module) -> nn.Module | None:
    """The layer with parameters that was made first; models make their layers in the order of their use."""
    leaves = (one for one in module.modules() if next(one.children(), None) is None or isinstance(one, nn.RNNBase))
    return next((one for one in leaves if next(one.parameters(recurse=False), None) is not None), None)


def _required(module: nn.Module) -> list[str]:
    """The parameters of forward that have no default; none if they are not known."""
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    return [one.name for one in parameters if one.kind in kinds and one.default is inspect.Parameter.empty]


def _error_with(row: ProposedRow, module: nn.Module) -> Exception | None:
    """What the module raises for these inputs; None if it runs."""
    try:
        with torch.no_grad(), state_put_back(module):
            for example in examples_of((row,), module):
                example.call(module)
    except Exception as error:  # noqa: BLE001 - the user's forward raises anything for inputs that it cannot take
        return error
    return None
