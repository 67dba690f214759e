"""Loads weights into their module, or reports what does not fit, and writes out those that it computes at each call."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from ace_studio.engine.flow.plain_tensors import check_plain
from ace_studio.engine.load.state_match import Match, StateDict, best_matches, shown, with_nearest
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode, message_of


def load_weights(
    module: nn.Module, weights: Mapping[str, Tensor] | Sequence[StateDict], path: Path, *, reporter: Reporter
) -> None:
    """Copy the weights into the module; every name and every shape must match.

    Of several state dicts in a file, and of several ways to match its names (see `state_match`), the best is taken; a
    warning names what was left out, and which others fit as well.

    Raises: AceError(BAD_FILE) with what is missing, unexpected or of another shape.
    """
    states = [StateDict(weights)] if isinstance(weights, Mapping) else list(weights)
    wanted = module.state_dict()
    matches = best_matches(states, wanted)
    best = matches[0]
    if best.difference:
        difference = with_nearest(best, wanted)
        read_as = f"; read from {best.words}" if best.words else ""
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"The weights in {path.name} do not fit {type(module).__name__}",
            why=difference.sentence + read_as,
            remedy="build the model with the sizes it was trained with, or give the weights that belong to it",
            where=str(path),
            details=difference.listing,
        )
    check_plain(best.tensors.items(), f"{path.name} holds", code=ErrorCode.BAD_FILE, where=str(path))
    _check_types(best.tensors, wanted, path, reporter)
    _warn_of_choices(best, matches, path, reporter)
    _warn_of_non_finite(best.tensors, path, reporter)
    try:
        # A model that was made on the meta device has no memory to copy into.
        module.load_state_dict(best.tensors, assign=any(one.is_meta for one in module.state_dict().values()))
    except RuntimeError as error:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"The weights in {path.name} could not be loaded into {type(module).__name__}",
            why=message_of(error, limit=300),
            remedy="check that the file was saved from this class",
            where=str(path),
            details=str(error),
        ) from error


def _warn_of_choices(best: Match, matches: Sequence[Match], path: Path, reporter: Reporter) -> None:
    """Warn which weights were taken if there was a choice, and which tensors were not used."""
    others = [match for match in matches[1:] if not match.difference and _is_other(match, best)]
    if others:
        named = "; ".join(match.words or "the names as they are" for match in others)
        reporter.warn(
            "weights-choice",
            f"{path.name} holds several sets of weights that fit; taken: {best.words or 'the names as they are'}; "
            f"as good: {named}. To take another one, name its key as [model] weights = '{path.name}:KEY'",
            where=str(path),
        )
    elif best.left_out:
        reporter.warn(
            "weights-left-out",
            f"{len(best.left_out)} tensors of {path.name} outside of '{best.prefix}' are no part of the model and were "
            f"left out: {shown(best.left_out)}",
            where=str(path),
        )


def _is_other(match: Match, best: Match) -> bool:
    """Whether another match has other values; the same tensors may be found in two ways."""
    pairs = ((tensor, best.tensors[name]) for name, tensor in match.tensors.items())
    return any(one is not other and not torch.equal(one, other) for one, other in pairs)


def _check_types(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path, reporter: Reporter) -> None:
    """Refuse numbers that would lose a part in silence, and warn about stored numbers that may lack their scales."""
    lost = [name for name, tensor in weights.items() if tensor.is_complex() and not wanted[name].is_complex()]
    if lost:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{path.name} holds complex numbers where the model has real ones: {shown(lost)}",
            why="their imaginary parts would be lost",
            remedy="give the weights that belong to this model, or save the real part alone",
            where=str(path),
        )
    small = [
        name
        for name, tensor in weights.items()
        if tensor.itemsize == 1 and wanted[name].itemsize > 1 and tensor.dim() > 1
    ]
    if small:
        reporter.warn(
            "converted-weights",
            f"{len(small)} tensors of {path.name} are stored in 8 bits and were converted without a scale: "
            f"{shown(small)}. If they are quantized, the model's answers are wrong",
            where=str(path),
        )


def _warn_of_non_finite(weights: Mapping[str, Tensor], path: Path, reporter: Reporter) -> None:
    bad = [
        name
        for name, tensor in weights.items()
        if tensor.is_floating_point() and tensor.element_size() > 1 and not bool(torch.isfinite(tensor).all())
    ]
    if bad:
        reporter.warn(
            "non-finite-weights",
            f"{len(bad)} tensors of {path.name} hold NaN or infinity: {shown(bad)}",
            where=str(path),
        )


def write_out_weights(module: nn.Module) -> list[str]:
    """Replace every parametrized tensor by its current value, and remove the hooks of the older two norms.

    In inference such a weight (weight norm, spectral norm, LoRA, ...) is a constant. Left computed, it costs time at
    every call, and no target treats it as one: it gets no scale per channel and is not stored in fewer bits.

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
