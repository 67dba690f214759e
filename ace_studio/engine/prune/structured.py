"""Structured pruning: whole channels are removed from every layer that reads or writes them, by torch-pruning."""

import copy
import importlib.metadata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example, tensor_leaves
from ace_studio.engine.progress import Reporter
from ace_studio.engine.prune.layers import CONVOLUTION_LAYERS, PRUNABLE
from ace_studio.records.errors import AceError, ErrorCode

INSTALL = "pip install 'ace-studio[prune]'"
OUTPUT_REASON = "its channels are the model's output"


@dataclass(frozen=True)
class StructuredJob:
    """What channels are removed from."""

    module: nn.Module
    """Changed in place; gradients in ``.grad`` are used if ``is_taylor``."""
    layers: Mapping[str, nn.Module]
    kept: Mapping[str, str]
    """Layers that stay whole -> why."""
    amount: float
    round_to: int
    is_taylor: bool
    examples: Sequence[Example]
    reporter: Reporter


def require_library() -> None:
    """Raises: AceError(NOT_INSTALLED) if torch-pruning is not there."""
    try:
        importlib.metadata.version("torch-pruning")
    except importlib.metadata.PackageNotFoundError as error:
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            "Structured pruning needs the package torch-pruning",
            why="it finds the layers that share a channel",
            remedy=f"Install it with: {INSTALL}; or choose unstructured or n:m, which do not need it.",
            where="[prune] method",
        ) from error


def prune_channels(job: StructuredJob) -> tuple[nn.Module, dict[str, str]]:
    """Remove the least important channels of every layer.

    Layers that give the outputs keep their channels. If the pruned model fails or its outputs have other shapes, every
    layer is pruned alone in a copy, and those that break the model stay whole.

    Returns: the pruned module, and the layers that stayed whole with the reason.
    Raises: AceError(NOT_INSTALLED); AceError(UNSUPPORTED) if no layer can be pruned.
    """
    require_library()
    shapes = _output_shapes(job.module, job.examples)
    kept = dict(job.kept)
    pristine = copy.deepcopy(job.module)
    _carry_gradients(job.module, pristine)
    pruned, problem = _attempt(job, pristine, shapes, keep=kept)
    if pruned is None:
        kept |= _layers_that_break(job, pristine, shapes, kept)
        if all(path in kept for path in job.layers):
            raise _cannot_follow(kept, problem)
        pruned, problem = _attempt(job, pristine, shapes, keep=kept)
        if pruned is None:
            raise _cannot_follow(kept, problem)
    return pruned, kept


def _attempt(
    job: StructuredJob, pristine: nn.Module, shapes: list[Any], *, keep: dict[str, str], only: str = ""
) -> tuple[nn.Module | None, str]:
    """A pruned copy whose outputs have the same shapes, else None and the problem. Adds output layers to ``keep``."""
    module = copy.deepcopy(pristine)
    _carry_gradients(pristine, module)
    try:
        # The library warns about parameters that it does not know; running the model finds real problems.
        with warnings.catch_warnings(action="ignore"), torch.enable_grad():
            _prune(job, module, keep=keep, only=only)
        found = _output_shapes(module, job.examples)
    except AceError:
        raise
    except Exception as error:  # noqa: BLE001 - the model's own forward, with sizes that it was not written for
        return None, str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return (module, "") if found == shapes else (None, f"the outputs become {found}, and were {shapes}")


def _prune(job: StructuredJob, module: nn.Module, *, keep: dict[str, str], only: str) -> None:
    import torch_pruning  # noqa: PLC0415 - an optional package

    layers = {path: module.get_submodule(path) for path in job.layers}
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.requires_grad_(True)
    example = job.examples[0].copied()
    importance = torch_pruning.importance
    pruner = torch_pruning.pruner.BasePruner(
        module,
        example_inputs=example,
        importance=importance.TaylorImportance() if job.is_taylor else importance.MagnitudeImportance(p=2),
        pruning_ratio=job.amount,
        round_to=job.round_to,
        ignored_layers=[module.get_submodule(path) for path in keep],
        in_channel_groups={},  # the library's own defaults are shared between calls, and grow
        out_channel_groups={},
        num_heads={},
        root_module_types=list(PRUNABLE),
        forward_fn=lambda model, call: call.call(model),
        output_transform=_derivable,
    )
    for path, layer in layers.items():
        if path not in keep and _gives_output(pruner.DG, layer):
            keep[path] = OUTPUT_REASON
            pruner.ignored_layers.append(layer)
    for group in pruner.step(interactive=True):
        job.reporter.check()
        if not only or group[0].dep.target.module is layers[only]:
            group.prune()
    module.zero_grad(set_to_none=True)


def _derivable(outputs: object) -> list[Tensor]:
    return [leaf for leaf in tensor_leaves(outputs) if leaf.is_floating_point() and leaf.requires_grad]


def _gives_output(graph: Any, layer: nn.Module) -> bool:
    """Whether the layer's channels reach an end of the graph without another layer with weights in between."""
    first = graph.module2node.get(layer)
    if first is None:
        return False
    seen, waiting = {id(first)}, list(first.outputs)
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not node.outputs:
            return not isinstance(node.module, PRUNABLE)
        if not isinstance(node.module, PRUNABLE) or _is_depthwise(node.module):
            waiting += node.outputs
    return not first.outputs


def _is_depthwise(layer: nn.Module) -> bool:
    return isinstance(layer, CONVOLUTION_LAYERS) and layer.groups == layer.out_channels > 1


def _layers_that_break(
    job: StructuredJob, pristine: nn.Module, shapes: list[Any], kept: dict[str, str]
) -> dict[str, str]:
    """Path of every layer that breaks the model if it alone is pruned -> the problem."""
    found: dict[str, str] = {}
    waiting = [path for path in job.layers if path not in kept]
    for index, path in enumerate(waiting):
        job.reporter.advance(index / len(waiting), f"{path} alone")
        pruned, problem = _attempt(job, pristine, shapes, keep=dict(kept), only=path)
        if pruned is None:
            found[path] = f"the model fails without some of its channels: {problem}"
    return found


def _cannot_follow(kept: Mapping[str, str], problem: str) -> AceError:
    listed = [f"{path}: {why}" for path, why in kept.items() if why != OUTPUT_REASON]
    return AceError.of(
        ErrorCode.UNSUPPORTED,
        "No layer can lose channels",
        why="; ".join(listed[:6]) or problem or "every layer gives the model's output",
        remedy='Choose method = "unstructured" or "n:m", which leave every shape as it is.',
        where="[prune] method",
    )


def _output_shapes(module: nn.Module, examples: Sequence[Example]) -> list[Any]:
    with torch.no_grad():
        return [[tuple(leaf.shape) for leaf in tensor_leaves(one.copied().call(module))] for one in examples]


def _carry_gradients(source: nn.Module, destination: nn.Module) -> None:
    """Copy gradients too, which ``deepcopy`` of a module leaves out."""
    for one, other in zip(source.parameters(), destination.parameters(), strict=True):
        other.grad = None if one.grad is None else one.grad.clone()
