"""What flows from stage to stage: an example call, a loaded model, a captured program, a plan bound to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.subgraphs.run_pieces import Place
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision, Scheme
from ace_studio.records.tensors import InputFinding


@dataclass(frozen=True)
class Example:
    """One call of the model: ``module(*args, **kwargs)``. Leaves may be tensors or plain values, nested freely."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object) -> Example:
        """Read what users write: a tuple or list is args, a dict with text keys is kwargs, the rest is one argument."""
        if isinstance(value, Example):
            return value
        if isinstance(value, tuple | list):
            return cls(args=tuple(value))
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return cls(kwargs=dict(value))
        return cls(args=(value,))

    def call(self, function: Callable[..., Any]) -> Any:
        """``function(*args, **kwargs)``."""
        return function(*self.args, **self.kwargs)

    def tensors(self) -> list[Tensor]:
        """The tensor leaves in pytree order: args first, then kwargs in their order."""
        return tensor_leaves((self.args, dict(self.kwargs)))

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Example:
        """The same call with every tensor leaf replaced by ``change(leaf)``."""
        args, kwargs = pytree.tree_map_only(Tensor, change, (self.args, dict(self.kwargs)))
        return Example(args=args, kwargs=kwargs)

    def copied(self) -> Example:
        """The same call with tensors of its own, so that a forward which writes into its inputs does no harm."""
        return self.map_tensors(lambda tensor: tensor.detach().clone())


def tensor_leaves(value: object) -> list[Tensor]:
    """The tensors inside any nesting of containers, in pytree order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def measured_places(outputs: Sequence[Tensor]) -> list[int]:
    """Places of the outputs that a fidelity is about: those of real or complex numbers; where there are none, all.

    How far an index, a label or a truth value is from another says nothing: of two scores that nearly tie, rounding
    puts either first, and their indices may be worlds apart.
    """
    found = [place for place, leaf in enumerate(outputs) if leaf.is_floating_point() or leaf.is_complex()]
    return found or list(range(len(outputs)))


def put_in_eval_mode(module: nn.Module) -> None:
    """``module.eval()``, except for the module of an exported program: that refuses, and keeps the mode it was in."""
    try:
        module.eval()
    except NotImplementedError:
        if not isinstance(module, torch.fx.GraphModule):
            raise
        for child in module.modules():  # nothing in it reads the flag; it only must not say the contrary
            child.training = False


@dataclass
class LoadedModel:
    """A live module in eval mode, with the user's callables found beside it."""

    module: nn.Module
    source: Path
    """File (or folder) it came from; an empty path for a module given from Python."""
    sha256: str
    """Hash over the source and the weights; empty for a module given from Python."""
    examples: tuple[Example, ...] = ()
    """Examples that the entry returned beside the module, if any."""
    calibration: Callable[[], Iterable[object]] | None = None
    calibration_data: Path | None = None
    """File of arrays or folder of images that ``calibration`` is made from once an example says what fits."""
    tracing: Callable[[], Iterable[object]] | None = None
    tracing_data: Path | None = None
    """File of arrays or folder of images that ``tracing`` is made from."""
    evaluate: Callable[[Callable[..., Any]], Any] | None = None
    """The metric: takes a ``predict``, gives a number, or the scores of all samples."""
    labelled: Callable[[], Iterable[object]] | None = None
    """Gives the pairs of inputs and labels that a built-in metric is measured on."""
    finetune_data: Callable[[], Iterable[object]] | None = None
    """Gives batches to train on: inputs, or pairs of input and label if there is a loss."""
    finetune_loss: Callable[[Any, Any], Any] | None = None
    """``loss(output, label)``."""
    files: tuple[Path, ...] = ()
    """Every file that was read, for the hash check at the end."""
    frontend: str = "torch"
    """How its graph is come by: a row of the pipeline's registry of ways."""
    reference: nn.Module | None = None
    """What the module was written from (a TorchScript program); it must answer like it. None for an original."""
    original: nn.Module | None = None
    """The user's own module, where ``module`` was changed on purpose (pruned, fine-tuned): the baseline of everything.
    None if ``module`` is that."""


@dataclass(kw_only=True)
class Captured:
    """What every capture has, whole or in subgraphs; it matches eager."""

    table: GraphTable
    inputs: tuple[InputFinding, ...]
    """One per tensor leaf of `example`, in the order of `Example.tensors`."""
    example: Example
    """What was traced: every dynamic dimension is >= 2."""
    examples: tuple[Example, ...]
    """All that were verified, the user's own first, unseen sizes after them."""
    unseen: tuple[Example, ...]
    """Examples at sizes that nobody gave; they are run after every lowering and every reload."""
    module: nn.Module
    """The eager module the graph came from, in eval mode, on `device`."""
    device: torch.device
    fingerprint: str

    def dynamic_dims(self) -> list[dict[int, str]]:
        """Per tensor leaf of the example: index of each dynamic dimension -> its symbol (``s0``, or ``name_index``)."""
        return [
            {dim.index: dim.symbol or f"{found.name}_{dim.index}" for dim in found.dims if dim.verdict == "dynamic"}
            for found in self.inputs
        ]


@dataclass(kw_only=True)
class CapturedModel(Captured):
    """A capture of the whole graph: ``table.op_id[row]`` is the name of the node in ``program.graph``, in order."""

    program: torch.export.ExportedProgram


@dataclass(frozen=True)
class Subgraph:
    """A part of a model that was captured by itself: flat tensors in, flat tensors out."""

    place: Place
    """Where it belongs in the model; ``place.name`` begins the ids of its ops in the model's table."""
    captured: CapturedModel

    @property
    def name(self) -> str:
        """``p0``."""
        return self.place.name

    def id_in_model(self, op_id: str) -> str:
        """Id in the model's table of an op of this subgraph."""
        return f"{self.name}.{op_id}"


@dataclass(kw_only=True)
class PartialModel(Captured):
    """A capture in subgraphs, with the model's own Python between them."""

    subgraphs: tuple[Subgraph, ...]
    controls: tuple[tuple[str, str], ...] = ()
    """Function (``module:name``) and mark of the controls that the subgraphs were found with."""


@dataclass(frozen=True)
class BoundPlan:
    """A plan bound to a captured graph: the precision of every op that can have one on its own."""

    plan: Plan
    precision: Mapping[str, Precision]
    """Op id -> planned precision, for every op row."""
    reason: Mapping[str, str]
    """Op id -> why (which rule, or why it was left as it is)."""
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    """Op id -> grids, for the ops whose grids are not the plan's."""

    def scheme_of(self, op_id: str) -> Scheme:
        """The grids that the op gets at an integer precision."""
        return self.schemes.get(op_id, self.plan.scheme)

    def ops_at(self, precision: Precision) -> frozenset[str]:
        """Ids of the ops planned at ``precision``."""
        return frozenset(op_id for op_id, planned in self.precision.items() if planned is precision)

    @property
    def precisions(self) -> frozenset[Precision]:
        """Every precision that occurs."""
        return frozenset(self.precision.values())
