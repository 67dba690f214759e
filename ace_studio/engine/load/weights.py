"""Putting weights into the module they were made for, exactly, or saying in a few lines what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode

_MOST_SHOWN = 6


@dataclass
class StateDifference:
    """How the names and shapes of a file differ from those of a module."""

    missing: list[str] = field(default_factory=list)
    """Names that the module has and the file lacks."""
    unexpected: list[str] = field(default_factory=list)
    """Names that the file has and the module lacks."""
    reshaped: list[str] = field(default_factory=list)
    """``name: [file's shape] in the file, [module's shape] in the model``."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.reshaped)

    @property
    def sentence(self) -> str:
        """All three in one line, each with its count and first names."""
        parts = (
            (self.missing, "missing in the file"),
            (self.unexpected, "unknown to the model"),
            (self.reshaped, "of another shape"),
        )
        return "; ".join(f"{len(names)} {words} ({_shown(names)})" for names, words in parts if names)

    @property
    def listing(self) -> str:
        """Every name, one per line."""
        groups = (("missing", self.missing), ("unexpected", self.unexpected), ("shape", self.reshaped))
        return "\n".join(f"{title}: {name}" for title, names in groups for name in names)


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], path: Path, *, reporter: Reporter) -> None:
    """Copy the weights into the module: every name, every shape.

    A prefix that all names of one side share (``module.`` of DataParallel, ``_orig_mod.`` of torch.compile, ``model.``
    of a wrapper) is taken off or put on if the names fit then. The counters that batch norms gained in torch 0.4.1 may
    be missing.

    Raises: AceError(BAD_FILE) with what is missing, unexpected or of another shape.
    """
    wanted = module.state_dict()
    counters = {name: tensor for name, tensor in wanted.items() if name.endswith("num_batches_tracked")}
    fitting = dict(weights)
    for named in _renamings(weights, wanted):
        completed = {**counters, **named}
        if completed.keys() == wanted.keys():
            fitting = completed
            break
    if difference := compare_states(fitting, wanted):
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"The weights in {path.name} do not fit {type(module).__name__}",
            why=difference.sentence,
            remedy="build the model with the sizes it was trained with, or give the weights that belong to it",
            where=str(path),
            details=difference.listing,
        )
    _warn_of_non_finite(fitting, path, reporter)
    try:
        module.load_state_dict(fitting)
    except RuntimeError as error:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"The weights in {path.name} could not be put into {type(module).__name__}",
            why=" ".join(str(error).split())[:300],
            remedy="check that the file was saved from this class",
            where=str(path),
            details=str(error),
        ) from error


def compare_states(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> StateDifference:
    """What keeps the weights from fitting; falsy if nothing does. Lazy parameters fit any shape."""
    difference = StateDifference(
        missing=[name for name in wanted if name not in weights],
        unexpected=[name for name in weights if name not in wanted],
    )
    for name, tensor in weights.items():
        place = wanted.get(name)
        if not isinstance(place, Tensor) or is_lazy(place) or tensor.shape == place.shape:
            continue
        difference.reshaped.append(f"{name}: {list(tensor.shape)} in the file, {list(place.shape)} in the model")
    return difference


def _renamings(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """The weights under their own names, then with shared prefixes taken off, then with the module's put on."""
    yield dict(weights)
    for prefix in _shared_prefixes(weights):
        yield {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
    for prefix in _shared_prefixes(wanted):
        yield {prefix + name: tensor for name, tensor in weights.items()}


def _shared_prefixes(names: Iterable[str]) -> Iterator[str]:
    """``a.``, ``a.b.``, ... as far as every name begins so."""
    listed = list(names)
    prefix = ""
    while listed:
        head, dot, _ = listed[0][len(prefix) :].partition(".")
        prefix += head + dot
        if not dot or not all(name.startswith(prefix) for name in listed):
            return
        yield prefix


def _warn_of_non_finite(weights: Mapping[str, Tensor], path: Path, reporter: Reporter) -> None:
    bad = [name for name, tensor in weights.items() if tensor.is_floating_point() and not _is_finite(tensor)]
    if bad:
        reporter.warn(
            "non-finite-weights",
            f"{len(bad)} tensors of {path.name} hold NaN or infinity: {_shown(bad)}",
            where=str(path),
        )


def _is_finite(tensor: Tensor) -> bool:
    return tensor.element_size() == 1 or bool(torch.isfinite(tensor).all())


def _shown(names: list[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (
        f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    )
