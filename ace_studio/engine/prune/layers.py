"""The layers that can be pruned, those that the user keeps whole, and the cost of each in one call."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.plan import rule_matches

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
CONVOLUTION_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED)
PRUNABLE = (*CONVOLUTION_LAYERS, nn.Linear)
"""Classes of layers with a weight of [out, in / groups, ...] (transposed: [in, out / groups, ...])."""
WHERE_IGNORE = "[prune] ignore"


@dataclass(frozen=True)
class Layers:
    """The layers of one module, by dotted path."""

    prunable: Mapping[str, nn.Module]
    kept: Mapping[str, str]
    """Path -> why it stays whole."""


def find_layers(module: nn.Module, ignore: Iterable[str]) -> Layers:
    """The layers to prune, and those that stay whole with the reason.

    Args:
        module: The model.
        ignore: ``module:GLOB`` or ``type:GLOB``, as the plan's rules.

    Raises: AceError(NOT_FOUND), one problem per pattern that matches no layer; AceError(UNSUPPORTED) if none is
            left.
    """
    shared = Counter(id(owner.weight) for owner in _owners(module))
    prunable: dict[str, nn.Module] = {}
    kept: dict[str, str] = {}
    used: set[str] = set()
    patterns = tuple(ignore)
    for path, layer in module.named_modules():
        if not isinstance(layer, PRUNABLE):
            continue
        hits = [one for one in patterns if _matches(one, path, layer)]
        used.update(hits)
        if hits:
            kept[path] = f"ignored: {hits[0]}"
        elif shared[id(layer.weight)] > 1:
            kept[path] = "another module reads the same weight"
        else:
            prunable[path] = layer
    _check(prunable, kept, idle=[one for one in patterns if one not in used])
    return Layers(prunable=prunable, kept=kept)


def _owners(module: nn.Module) -> Iterator[nn.Module]:
    return (child for child in module.modules() if isinstance(getattr(child, "weight", None), nn.Parameter))


def _matches(pattern: str, path: str, layer: nn.Module) -> bool:
    return rule_matches(pattern, op_id="", op="", module=path, module_type=type(layer).__name__)


def _check(prunable: Mapping[str, nn.Module], kept: Mapping[str, str], *, idle: list[str]) -> None:
    names = ", ".join([*prunable, *kept][:6])
    if idle:
        raise AceError(
            *(
                Problem(
                    code=ErrorCode.NOT_FOUND,
                    what=f"'{pattern}' matches no layer that could be pruned",
                    why=f"the model's layers are {names}" if names else "the model has no such layer",
                    remedy="Take it out, or name a convolution or a linear layer.",
                    where=WHERE_IGNORE,
                )
                for pattern in idle
            )
        )
    if not prunable:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "There is nothing to prune",
            why="every layer is kept: " + "; ".join(f"{path} ({why})" for path, why in list(kept.items())[:4])
            if kept
            else "the model has no convolution and no linear layer as a module of its own",
            remedy="Ignore fewer layers, or leave [prune] out.",
            where="[prune]",
        )


def input_dim(layer: nn.Module) -> int:
    """Which dimension of the layer's weight runs over the inputs of one group."""
    return 0 if isinstance(layer, TRANSPOSED) else 1


def count_macs(module: nn.Module, layers: Mapping[str, nn.Module], example: Example) -> dict[str, int]:
    """Multiply-adds of every layer in one call of the model; a layer that is not called as a module has 0."""
    counts = dict.fromkeys(layers, 0)

    def count(path: str, layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        counts[path] += _macs(layer, args, output)

    with ExitStack() as hooks, torch.no_grad():
        for path, layer in layers.items():
            hooks.enter_context(layer.register_forward_hook(partial(count, path)))
        example.copied().call(module)
    return counts


def _macs(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> int:
    """Every element of the weight is used once per place: of the output, or of the input if it is transposed."""
    weight: Tensor = layer.weight  # type: ignore[assignment]
    if isinstance(layer, nn.Linear):
        return output.numel() // layer.out_features * weight.numel()
    places, channels = (args[0], weight.shape[0]) if isinstance(layer, TRANSPOSED) else (output, weight.shape[0])
    return places.numel() // channels * weight.numel()


def weight_shape(tensor: Tensor) -> str:
    """``64x3x7x7``, as reports show it."""
    return "x".join(map(str, tensor.shape))


def layer_bytes(layer: nn.Module) -> int:
    """Of weight and bias as they are stored."""
    return sum(one.numel() * one.element_size() for one in layer.parameters(recurse=False))
