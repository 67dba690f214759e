"""Warnings about a model that its own results on the examples give reason for, before a run costs minutes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.capture.eager import has_bad_numbers
from ace_studio.engine.examples.leaves import forward_parameters, named_leaves
from ace_studio.engine.flow import Example, tensor_leaves
from ace_studio.engine.progress import Reporter

DATA_WARNINGS = frozenset({"bad-numbers", "empty-output", "constant-output"})
"""Those that depend on the numbers in the examples."""


def warn_about_the_model(
    module: nn.Module, examples: Sequence[Example], results: Sequence[Any], written: Sequence[int], reporter: Reporter
) -> None:
    """Warn about what runtimes will not repeat, and about results that prove nothing.

    ``written`` are the positions of the tensors that forward changes in the first example.
    """
    warn_about_results(module, results, reporter)
    _warn_about_odd_weights(module, reporter)
    leaves = named_leaves(examples[0], forward_parameters(module))
    for leaf in leaves:
        if leaf.tensor is None and leaf.value is not None:
            reporter.warn("fixed-argument", f"Input '{leaf.name}' is fixed at {leaf.value!r:.60} in the graph")
    training = [name for name, child in module.named_modules() if child.training]
    if training:
        shown = ", ".join(f"'{name}'" if name else "the model" for name in training[:5])
        reporter.warn("still-training", f"In training mode although eval() was called: {shown}")
    names = [leaf.name for leaf in leaves if leaf.tensor is not None]
    changed = ", ".join(names[at] for at in written)
    if changed:
        reporter.warn("mutates-input", f"forward() writes into its input {changed}; runtimes may not repeat that")


def warn_about_results(module: nn.Module, results: Sequence[Any], reporter: Reporter) -> None:
    """Warn about results on the examples that nothing can be compared with, or that prove nothing."""
    bad = [str(number) for number, result in enumerate(results, start=1) if has_bad_numbers([result])]
    if bad:
        reporter.warn("bad-numbers", f"The model's own results hold NaN or infinity on example {', '.join(bad)}")
    tensors = [tensor_leaves(result) for result in results]
    empty = [str(number) for number, leaves in enumerate(tensors, 1) if not any(leaf.numel() for leaf in leaves)]
    if empty:
        reporter.warn(
            "empty-output",
            f"The results on example {', '.join(empty)} have no elements, so nothing can be compared there: give "
            "examples with at least one sample",
            where="[inputs]",
        )
    elif _are_constant(tensors):
        weights = [one for one in module.parameters() if one.dim() > 1]
        reason = "all its weights are zero" if weights and not any(map(_is_set, weights)) else "it may ignore its input"
        reporter.warn(
            "constant-output",
            f"Every result of the model is the same number or the same on all examples: {reason}. Any compressed "
            "model will seem exact; load its weights, or give examples that differ",
        )


def _is_set(weight: Tensor) -> bool:
    return bool((weight != 0).any())


def _are_constant(results: Sequence[Sequence[Tensor]]) -> bool:
    """Whether every output is equal on all (two or more) examples, or one number everywhere."""
    for leaves in zip(*results, strict=False):
        plain = [leaf.detach().cpu() for leaf in leaves]
        is_equal = len(plain) > 1 and all(torch.equal(plain[0], other) for other in plain[1:])
        flat = torch.cat([leaf.reshape(-1).to(plain[0].dtype) for leaf in plain])
        if not is_equal and (len(flat) < 2 or bool((flat != flat[0]).any())):
            return False
    return True


def _warn_about_odd_weights(module: nn.Module, reporter: Reporter) -> None:
    tensors = [*module.parameters(), *module.buffers()]
    odd = sorted({str(one.dtype)[6:] for one in tensors if one.dim() > 1 and _is_odd(one)})
    if odd:
        reporter.warn(
            "odd-weights",
            f"Weights of the model are {' and '.join(odd)}: few runtimes take them, and no plan quantizes them. Give a "
            "float32 model; complex numbers can be kept as pairs (torch.view_as_real)",
        )


def _is_odd(tensor: Tensor) -> bool:
    return tensor.is_complex() or tensor.dtype == torch.int8 or (tensor.is_floating_point() and tensor.itemsize == 1)
