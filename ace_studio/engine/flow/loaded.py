"""A loaded model, and where its inputs, labels and metric come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ace_studio.engine.flow.example import Example


@dataclass(frozen=True)
class DataSources:
    """Functions and files that give a model its inputs, labels and metric."""

    examples: tuple[Example, ...] = ()
    """Examples that the entry returned beside the module, or proposed ones."""
    are_made_up: bool = False
    """Whether ``examples`` are random numbers of proposed sizes."""
    refused: str = ""
    """What forward raised for the likeliest proposed inputs, with their sizes; empty if some ran or none were tried."""
    tracing: Callable[[], Iterable[object]] | None = None
    tracing_path: Path | None = None
    """File of arrays or folder of images with examples to trace."""
    calibration: Callable[[], Iterable[object]] | None = None
    calibration_path: Path | None = None
    """File of arrays or folder of images; it becomes ``calibration`` once an example says what fits."""
    evaluate: Callable[[Callable[..., Any]], Any] | None = None
    """The metric: takes a ``predict``, gives a number, or the scores of all samples."""
    labelled: Callable[[], Iterable[object]] | None = None
    """Gives the pairs of inputs and labels that a built-in metric is measured on."""
    finetune: Callable[[], Iterable[object]] | None = None
    """Gives batches to train on: inputs, or pairs of input and label if there is a loss."""
    finetune_loss: Callable[[Any, Any], Any] | None = None
    """``loss(output, label)``."""


@dataclass(frozen=True)
class GivenModel:
    """The user's module where the loaded one is its copy at fp32."""

    module: nn.Module
    halves: tuple[torch.dtype, ...]
    """The 16-bit types of its weights."""
    dtypes: tuple[torch.dtype, ...]
    """The type of every tensor of a call, in pytree order."""

    @property
    def types(self) -> str:
        """``bfloat16``, or several."""
        return " and ".join(str(dtype).removeprefix("torch.") for dtype in self.halves)

    def example(self, example: Example) -> Example:
        """A call of the copy, as a call of this module."""
        dtypes = iter(self.dtypes)
        return example.map_tensors(lambda leaf: leaf.to(next(dtypes)))


@dataclass(frozen=True)
class LoadedModel:
    """A live module in eval mode, and its data sources."""

    module: nn.Module
    source: Path
    """File (or folder) it came from; an empty path for a module given from Python."""
    sha256: str
    """Hash over the source and the weights; empty for a module given from Python."""
    data: DataSources = field(default_factory=DataSources)
    files: tuple[Path, ...] = ()
    """Every file that was read, for the hash check at the end."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Path -> SHA-256 of the user's code that ran; it grows while forward() imports more. Empty for a given module."""
    frontend: str = "torch"
    """How its graph is obtained: a row of the pipeline's registry of frontends."""
    reference: nn.Module | None = None
    """What the module was written from (a TorchScript program); both must give equal outputs. None for an original."""
    original: nn.Module | None = None
    """The user's own module, if ``module`` is a pruned or fine-tuned copy of it: the baseline of everything."""
    given: GivenModel | None = None
    """The user's own module, if it has 16-bit weights and all else is made from a copy at fp32."""

    def with_data(self, **changes: Any) -> LoadedModel:
        """The same model with other data sources."""
        return replace(self, data=replace(self.data, **changes))


def put_in_eval_mode(module: nn.Module) -> None:
    """``module.eval()``, except for the module of an exported program: that refuses, and keeps the mode it was in."""
    try:
        module.eval()
    except NotImplementedError:
        if not isinstance(module, torch.fx.GraphModule):
            raise
        for child in module.modules():  # nothing in it reads the flag; it only must not say the contrary
            child.training = False
