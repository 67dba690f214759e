"""LSTM, GRU and RNN layers as one operator each, where torch would write them out step by step."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx
from torch._decomp import decomposition_table


@contextmanager
def recurrent_layers_kept_whole(*layers: Any) -> Iterator[None]:
    """Trace LSTM, GRU and RNN layers (or those named) as one operator each, described by the shapes of their results.

    Otherwise torch finds the shapes by unrolling the layer over time, which takes seconds and fixes the number of time
    steps; where that number is computed (frames of a spectrum), unrolling fails (torch 2.13).
    """
    described = {op: _RESULTS[op] for op in layers or _RESULTS}
    kernels = {op: dict(op.py_kernels) for op in described}
    unrolling: dict[Any, Callable[..., Any]] = {
        op: decomposition_table[op] for op in described if op in decomposition_table
    }
    try:
        decomposition_table.update({op: described[op] for op in unrolling})
        for op, results in described.items():
            _set_kernels(op, dict.fromkeys(kernels[op], results))
        yield
    finally:
        decomposition_table.update(unrolling)
        for op, own in kernels.items():
            _set_kernels(op, own)


def _set_kernels(op: Any, kernels: Mapping[Any, Any]) -> None:
    op.py_kernels.update(kernels)
    op._dispatch_cache.clear()


def _sequence(source: Tensor, hidden: Tensor, *, bidirectional: bool) -> Tensor:
    """Result of the last layer: [..., features] -> [..., hidden], twice as wide in two directions."""
    return source.new_empty((*source.shape[:-1], hidden.shape[-1] * (2 if bidirectional else 1)))


def _lstm_results(source: Tensor, hx: Sequence[Tensor], *settings: Any) -> tuple[Tensor, Tensor, Tensor]:
    sequence = _sequence(source, hx[0], bidirectional=settings[_BIDIRECTIONAL])
    return sequence, torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _rnn_results(source: Tensor, hx: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    """Batch first, the sequence is a transposed view, as that of PyTorch's kernels: compiled code asserts strides."""
    is_turned = len(settings) > _BATCH_FIRST and settings[_BATCH_FIRST]
    turned = source.transpose(0, 1) if is_turned else source
    sequence = _sequence(turned, hx, bidirectional=settings[_BIDIRECTIONAL])
    return sequence.transpose(0, 1) if is_turned else sequence, torch.empty_like(hx)


_BIDIRECTIONAL, _BATCH_FIRST = 5, 6
"""Positions behind input and state: params, has_biases, layers, dropout, train, bidirectional, batch_first."""

LAYERS_IN_KERNELS = (torch.ops.aten.gru.input, torch.ops.aten.rnn_tanh.input, torch.ops.aten.rnn_relu.input)
"""Layers that compiled code leaves to PyTorch's kernels. For LSTM layers Inductor calls oneDNN's."""
_RESULTS: Mapping[Any, Callable[..., Any]] = {
    torch.ops.aten.lstm.input: _lstm_results,
    **dict.fromkeys(LAYERS_IN_KERNELS, _rnn_results),
}
"""Layer -> what describes its results."""


def hide_layers(graph: fx.Graph) -> None:
    """Replace these layers by operators that no compiler decomposes; `show_layers` puts them back.

    Inductor writes one step after the other for as many steps as were traced: the compiled code takes no other number,
    and 17 steps in two directions take minutes to compile (torch 2.13).
    """
    for op in LAYERS_IN_KERNELS:
        for node in graph.find_nodes(op="call_function", target=op):
            node.target = _hidden_ops()[op]


def show_layers(graph: fx.Graph) -> None:
    """Put back what `hide_layers` replaced, in a graph that will not be decomposed any more."""
    for op, hidden in _hidden_ops().items():
        for node in graph.find_nodes(op="call_function", target=hidden):
            node.target = op


@functools.cache
def _hidden_ops() -> Mapping[Any, Any]:
    """Layer -> its stand-in, which computes the same."""
    library: Any = torch.library.Library("ace_studio_layers", "DEF")  # type: ignore[no-untyped-call]
    _declared.append(library)
    hidden = {}
    for op in LAYERS_IN_KERNELS:
        name, schema = op._schema.name.split("::")[1], str(op._schema)
        library.define(name + schema[schema.index("(") :])
        library.impl(name, op, "CompositeExplicitAutograd")
        library.impl(name, _rnn_results, "Meta")
        hidden[op] = getattr(torch.ops.ace_studio_layers, name).default
    return hidden


_declared: list[torch.library.Library] = []
"""Operators are gone when their library is."""
