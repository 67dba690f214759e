"""Replaces weights that a module computes at every call by their values: weight norm, spectral norm, LoRA, ...

In inference they are constants. Left computed, they cost time at every call, and no target treats them as weights: they
get no scale per channel and are not stored in fewer bits.
"""

import torch
from torch import nn
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm


def write_out_weights(module: nn.Module) -> list[str]:
    """Replace every parametrized tensor by its current value, and remove the hooks of the older two norms.

    The changed layers are put in eval mode, in which they give the same numbers as before. A parametrization that does
    not give the same tensor twice (a random one) stays.

    Returns: The names of the replaced tensors (``encoder.0.weight``).
    """
    found: list[str] = []
    with torch.no_grad():
        for path, child in list(module.named_modules()):
            names = [*_write_out_parametrizations(child), *_write_out_hooks(child)]
            found += [f"{path}.{name}" if path else name for name in names]
    return found


def _write_out_parametrizations(child: nn.Module) -> list[str]:
    if not parametrize.is_parametrized(child):
        return []
    child.eval()
    written = []
    for name in list(child.parametrizations):  # type: ignore[arg-type]  # a ModuleDict
        if not torch.equal(getattr(child, name), getattr(child, name)):
            continue
        is_trained = next(child.parametrizations[name].parameters(), None) is not None  # type: ignore[index, union-attr]
        parametrize.remove_parametrizations(child, name, leave_parametrized=True)
        if is_trained:
            _keep_as_parameter(child, name)
        written.append(name)
    return written


def _keep_as_parameter(child: nn.Module, name: str) -> None:
    """Make a parameter of the buffer that torch leaves; pruning and training ignore buffers."""
    value = child._buffers.pop(name, None)
    if value is not None:
        child.register_parameter(name, nn.Parameter(value))


def _write_out_hooks(child: nn.Module) -> list[str]:
    hooks = list(child._forward_pre_hooks.values())
    weight_norms = [hook.name for hook in hooks if isinstance(hook, WeightNorm)]
    spectral_norms = [hook.name for hook in hooks if isinstance(hook, SpectralNorm)]
    for name in weight_norms:
        remove_weight_norm(child, name)
    for name in spectral_norms:
        remove_spectral_norm(child, name)
    return weight_norms + spectral_norms
