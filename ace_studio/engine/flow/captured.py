"""A captured model: whole, or in subgraphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ace_studio.engine.flow.example import Example
from ace_studio.engine.subgraphs.run_pieces import Place
from ace_studio.records.graph import GraphTable
from ace_studio.records.tensors import InputFinding


@dataclass(kw_only=True)
class Captured(ABC):
    """What every capture has, whole or in subgraphs; its outputs equal those of eager."""

    is_whole: ClassVar[bool]
    """Whether it is one graph; if not, the model's own Python runs between its subgraphs."""
    has_eager_ops: ClassVar[bool] = True
    """Whether its ops can be run, differentiated and timed one by one in torch."""
    improvement_problem: ClassVar[str] = ""
    """Why its weights cannot be improved; empty if they can."""
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
    first_state: Mapping[str, Tensor] = field(default_factory=dict)
    """Name -> first values, of the buffers that forward changes."""

    @property
    def given_examples(self) -> tuple[Example, ...]:
        """The user's own examples."""
        return self.examples[: len(self.examples) - len(self.unseen)]

    def dynamic_dims(self) -> list[dict[int, str]]:
        """Per tensor leaf of the example: index of each dynamic dimension -> its symbol (``s0``, or ``name_index``)."""
        return [
            {dim.index: dim.symbol or f"{found.name}_{dim.index}" for dim in found.dims if dim.verdict == "dynamic"}
            for found in self.inputs
        ]

    @abstractmethod
    def graphs(self) -> Sequence[Graph]:
        """Its graph, or those of its subgraphs."""

    @property
    @abstractmethod
    def torch_graph(self) -> CapturedModel | None:
        """The one graph that can be simulated and given other weights; None if there is none."""


@dataclass(kw_only=True)
class CapturedModel(Captured):
    """A capture of the whole graph: ``table.op_id[row]`` is the name of the node in ``program.graph``, in order."""

    is_whole: ClassVar[Literal[True]] = True
    program: torch.export.ExportedProgram

    def graphs(self) -> Sequence[Graph]:
        """Itself."""
        return (Graph(self, str),)

    @property
    def torch_graph(self) -> CapturedModel | None:
        """Itself."""
        return self


@dataclass(kw_only=True)
class CapturedFile(CapturedModel):
    """The graph of an ONNX file; its program only records how a call looks."""

    has_eager_ops = False
    improvement_problem = "the targets take this file as it is, and its weights are not torch's"

    @property
    def torch_graph(self) -> CapturedModel | None:
        """None: the graph is ONNX's."""
        return None


class Graph(NamedTuple):
    """One captured graph, and the ids of its ops in the model's table."""

    captured: CapturedModel
    id_in_model: Callable[[str], str]


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

    is_whole: ClassVar[Literal[False]] = False
    improvement_problem = "the model was captured in subgraphs, and a method looks across a whole graph"
    subgraphs: tuple[Subgraph, ...]
    controls: tuple[tuple[str, str], ...] = ()
    """Function (``module:name``) and mark of the controls that the subgraphs were found with."""

    def graphs(self) -> Sequence[Graph]:
        """Those of the subgraphs, in order."""
        return [Graph(subgraph.captured, subgraph.id_in_model) for subgraph in self.subgraphs]

    @property
    def torch_graph(self) -> CapturedModel | None:
        """None: there are several."""
        return None


AnyCapture = CapturedModel | PartialModel
