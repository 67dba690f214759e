"""Matches the names in a file of weights with those of a module: wrappers, prefixes, several state dicts in a file."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

_MOST_SHOWN = 6
_MOST_PREFIXES = 24
_DEEPEST_PREFIX = 4
_LARGEST_TO_COMPARE = 3_000
"""Largest number of names that the quadratic search for nearest names compares."""
_WRAPPERS = frozenset(
    {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module", "_module"}
)
"""Parts that DataParallel, torch.compile, FSDP and similar wrappers add to names, at any depth."""
_HOMES = frozenset(
    {"model", "net", "network", "backbone", "encoder", "student", "teacher", "generator", "module", "ema", "model_ema"}
    | {"ema_model", "online_model", "averaged_model", "state_dict", "params", "base_model", "core"}
)
"""Usual attributes that hold the model in a training script; below other names, half the file must fit."""
_AVERAGES = ("ema", "averaged", "swa")
"""Words in the names of running averages; if both fit, the weights themselves are taken."""
_COUNTER = "num_batches_tracked"
"""Batch norms count batches since torch 0.4.1; older files lack the counters, which inference does not use."""


@dataclass(frozen=True)
class StateDict:
    """A table of names and tensors, and its place in its file."""

    tensors: Mapping[str, Tensor]
    place: str = ""
    """Dotted keys that lead to it, such as ``model_ema``; empty if the file is the table itself."""


@dataclass
class StateDifference:
    """The differences between the names and shapes of a file and those of a module."""

    missing: list[str] = field(default_factory=list)
    """Names that the module has and the file lacks."""
    unexpected: list[str] = field(default_factory=list)
    """Names that the file has and the module lacks."""
    reshaped: list[str] = field(default_factory=list)
    """``name: [file's shape] in the file, [module's shape] in the model``."""
    matched: int = 0
    """How many names have the same shape on both sides."""
    nearest: dict[str, str] = field(default_factory=dict)
    """Missing name -> the unexpected name of the same shape with the most similar spelling."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.reshaped)

    @property
    def sentence(self) -> str:
        """Summary in one line: each kind of difference with its count and first names."""
        parts = (
            (self.missing, "missing in the file"),
            (self.unexpected, "unknown to the model"),
            (self.reshaped, "of another shape"),
        )
        counts = [f"{len(names)} {words} ({shown(names)})" for names, words in parts if names]
        total = self.matched + len(self.missing) + len(self.reshaped)
        near = [f"{name} may be {other}" for name, other in self.nearest.items()]
        return "; ".join([f"{self.matched} of {total} match", *counts, *([shown(near, most=2)] if near else [])])

    @property
    def listing(self) -> str:
        """All names, one per line."""
        missing = [f"{name} (nearest: {self.nearest[name]})" if name in self.nearest else name for name in self.missing]
        groups = (("missing", missing), ("unexpected", self.unexpected), ("shape", self.reshaped))
        return "\n".join(f"{title}: {name}" for title, names in groups for name in names)


@dataclass(frozen=True)
class Match:
    """One way to read a state dict as the weights of a module."""

    state: StateDict
    tensors: Mapping[str, Tensor]
    """Tensors by the module's names; names that the module lacks are included."""
    prefix: str = ""
    """Prefix that was removed from the names of the file."""
    left_out: tuple[str, ...] = ()
    """Names of the file outside of the prefix, such as optimizer state or another copy of the weights."""
    difference: StateDifference = field(default_factory=StateDifference)

    @property
    def rank(self) -> tuple[bool, int, bool, int]:
        """Sort key, larger is better: complete, most tensors matched, no running average, fewest left out."""
        words = f"{self.state.place}.{self.prefix}".lower()
        is_average = any(word in words for word in _AVERAGES)
        return (not self.difference, self.difference.matched, not is_average, -len(self.left_out))

    def state_shape(self, name: str) -> torch.Size | None:
        """Shape of a tensor by its name in the module or in the file."""
        tensor = self.tensors.get(name, self.state.tensors.get(name))
        return None if tensor is None else tensor.shape

    @property
    def words(self) -> str:
        """Its place in the file: ``model_ema, below 'module.'``."""
        below = f"below '{self.prefix}'" if self.prefix else ""
        return ", ".join(word for word in (self.state.place, below) if word)


def best_matches(states: Sequence[StateDict], wanted: Mapping[str, Tensor]) -> list[Match]:
    """List every match of the file with the module, the best first; equal ones in the order in which they were found.

    It tries the names unchanged, without the parts that wrappers add, below each prefix of the file, and with
    the prefix that all names of the module share.
    """
    found: dict[tuple[str, str], Match] = {}
    for state in states:
        for match in _readings(state, wanted):
            key = (state.place, match.prefix)
            if key not in found or match.rank > found[key].rank:
                found[key] = match
            if not match.difference and not match.left_out:
                break
    return sorted(found.values(), key=lambda match: match.rank, reverse=True)


def compare_states(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> StateDifference:
    """Compare weights with a module's state; falsy if they fit. Lazy parameters fit any shape."""
    difference = StateDifference(
        missing=[name for name in wanted if name not in weights],
        unexpected=[name for name in weights if name not in wanted],
    )
    for name, tensor in weights.items():
        place = wanted.get(name)
        if not isinstance(place, Tensor):
            continue
        if is_lazy(place) or tensor.shape == place.shape:
            difference.matched += 1
        else:
            difference.reshaped.append(f"{name}: {list(tensor.shape)} in the file, {list(place.shape)} in the model")
    return difference


def with_nearest(match: Match, wanted: Mapping[str, Tensor]) -> StateDifference:
    """The difference of a match, with the nearest name of the same shape for each missing one."""
    difference = match.difference
    unexpected = difference.unexpected[:_LARGEST_TO_COMPARE]
    nearest = {}
    for name in difference.missing[:_MOST_SHOWN]:
        alike = [other for other in unexpected if match.state_shape(other) == wanted[name].shape]
        if close := difflib.get_close_matches(name, alike, n=1, cutoff=0.5):
            nearest[name] = close[0]
    return StateDifference(difference.missing, difference.unexpected, difference.reshaped, difference.matched, nearest)


def shown(names: Sequence[str], *, most: int = _MOST_SHOWN) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _readings(state: StateDict, wanted: Mapping[str, Tensor]) -> Iterator[Match]:
    yield _match(state, {name: name for name in state.tensors}, wanted)
    places = {unwrapped(name): name for name in wanted}
    for prefix in ("", *_prefixes(state.tensors)):
        below = {name: unwrapped(name.removeprefix(prefix)) for name in state.tensors if name.startswith(prefix)}
        if len(set(below.values())) == len(below):
            yield _match(state, {name: places.get(short, short) for name, short in below.items()}, wanted, prefix)
    for prefix in _shared_prefixes(wanted):
        yield _match(state, {name: prefix + name for name in state.tensors}, wanted)


def _match(state: StateDict, names: Mapping[str, str], wanted: Mapping[str, Tensor], prefix: str = "") -> Match:
    """The match under new names; batch counters that the file lacks are taken from the module.

    A file may have one name only of a weight that several layers share, as safetensors' ``save_model`` writes it.
    """
    counters = {name: tensor for name, tensor in wanted.items() if name.endswith(_COUNTER)}
    tensors = {**counters, **{new: state.tensors[old] for old, new in names.items()}}
    memory = {name: _memory(place) for name, place in wanted.items() if _has_memory(place)}
    stored = {memory[name]: tensor for name, tensor in tensors.items() if name in memory}
    tensors |= {name: stored[at] for name, at in memory.items() if name not in tensors and at in stored}
    left_out = tuple(name for name in state.tensors if name not in names)
    difference = compare_states(tensors, wanted)
    if len(left_out) > len(names) and prefix.partition(".")[0] not in _HOMES:
        difference.unexpected += left_out  # a small model fits into many a large file
    return Match(state, tensors, prefix, left_out, difference)


def _has_memory(place: object) -> bool:
    return isinstance(place, Tensor) and not is_lazy(place) and place.layout is torch.strided


def _memory(tensor: Tensor) -> tuple[object, ...]:
    """The same for tensors that are one; also on the device ``meta``, where nothing has an address."""
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride()


def unwrapped(name: str) -> str:
    """The name without the parts that wrappers add."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _prefixes(names: Iterable[str]) -> list[str]:
    """``a.``, ``a.b.``, ...: prefixes with the most names first."""
    counts: Counter[str] = Counter()
    for name in names:
        parts = name.split(".")[:-1]
        counts.update(".".join(parts[: depth + 1]) + "." for depth in range(min(len(parts), _DEEPEST_PREFIX)))
    return [prefix for prefix, _ in counts.most_common(_MOST_PREFIXES)]


def _shared_prefixes(names: Iterable[str]) -> Iterator[str]:
    """``a.``, ``a.b.``, ...: prefixes that all names share."""
    listed = list(names)
    prefix = ""
    while listed:
        head, dot, _ = listed[0][len(prefix) :].partition(".")
        prefix += head + dot
        if not dot or not all(name.startswith(prefix) for name in listed):
            return
        yield prefix
