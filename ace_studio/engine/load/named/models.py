"""Models of installed packages, opened by their name: ``timm:resnet18``, ``torchvision:ssd300_vgg16``.

They are built with random weights unless the recipe names a file of weights. Nothing is ever downloaded.
"""

import difflib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ace_studio.engine.examples.leaves import forward_parameters
from ace_studio.engine.flow import put_in_eval_mode
from ace_studio.engine.load.huggingface.library import import_package
from ace_studio.engine.load.proposals import ProposedInput, ProposedRow
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.named_source import NamedSource
from ace_studio.records.tensors import ValueSource

_BATCHES = (1, 2)
"""Batch sizes of the two examples; they differ so that the batch becomes dynamic."""
_DETECTION_SIDE, _SEGMENTATION_SIDE, _FLOW_SIDE, _FRAMES = 320, 256, 128, 16
_BUILD_ERRORS = (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, ArithmeticError)
"""Errors that constructors raise on the meta device, because some compute with the values they have just made."""


@dataclass(frozen=True)
class Collection:
    """One package whose models can be named."""

    package: str
    names: Callable[[ModuleType], list[str]]
    build: Callable[..., nn.Module]
    """Of the package, a name, and ``num_classes`` if another number is wanted."""
    rows: Callable[[ModuleType, str, nn.Module | None], tuple[ProposedRow, ...]]
    function: Callable[[ModuleType, str], Callable[..., Any]]
    """The function that builds a name; its file counts as read."""


@dataclass(frozen=True)
class NamedModel:
    """A model found by its name, not built yet."""

    source: NamedSource
    collection: Collection
    module: ModuleType

    @property
    def version(self) -> str:
        """Version of the package."""
        return version(self.source.collection)

    @property
    def summary(self) -> str:
        """First line of the package's documentation of the model."""
        text = inspect.getdoc(self.collection.function(self.module, self.source.model)) or ""
        return text.strip().partition("\n")[0]

    def files(self) -> tuple[Path, ...]:
        """The file that the model's code is in, and the package's own."""
        code = inspect.getsourcefile(inspect.unwrap(self.collection.function(self.module, self.source.model)))
        found = [Path(file) for file in (code, self.module.__file__) if file]
        return tuple(dict.fromkeys(found))

    def build(self) -> nn.Module:
        """Build the model with random weights, the same ones every time, in eval mode."""
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice about weights and coming changes of the package
            torch.manual_seed(0)
            asked = {"num_classes": self.source.classes} if self.source.classes else {}
            module = self.collection.build(self.module, self.source.model, **asked)
        put_in_eval_mode(module)
        return module

    def build_on_meta(self) -> nn.Module | None:
        """Build the model on the meta device, with shapes alone; None if its constructor needs values."""
        try:
            with torch.device("meta"):
                return self.build()
        except _BUILD_ERRORS:
            return None

    def rows(self, module: nn.Module | None) -> tuple[ProposedRow, ...]:
        """Propose example inputs; given the module, they have the parameter names of its forward."""
        return self.collection.rows(self.module, self.source.model, module)


def find_model(source: NamedSource) -> NamedModel:
    """Look the name up in the package.

    Raises: AceError(NOT_INSTALLED) if the package is not here or does not import; AceError(NOT_FOUND) with the
        nearest names if it has no such model.
    """
    collection = _COLLECTIONS[source.collection]
    module = import_package(collection.package, why="the Python that the engine runs in does not have it")
    names = collection.names(module)
    if source.model.partition(".")[0] not in names:
        close = difflib.get_close_matches(source.model, names, n=4, cutoff=0.5)
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"{source.collection} has no model '{source.model}'",
            why=f"version {version(source.collection)} has {len(names)} models"
            + (f"; the nearest names are {', '.join(close)}" if close else ""),
            remedy=f"did you mean '{source.collection}:{close[0]}'?" if close else "look it up in the list of models",
            where=source.text,
        )
    return NamedModel(source, collection, module)


def list_names(collection: str) -> list[str]:
    """The names of all models of a package. Raises: AceError(NOT_INSTALLED)."""
    row = _COLLECTIONS[collection]
    return row.names(import_package(row.package, why="the Python that the engine runs in does not have it"))


def _timm_rows(timm: ModuleType, name: str, module: nn.Module | None) -> tuple[ProposedRow, ...]:
    config = timm.models.get_pretrained_cfg(name)
    return _picture_rows(module, tuple(getattr(config, "input_size", None) or (3, 224, 224)))


def _torchvision_build(models: ModuleType, name: str, **given: int) -> nn.Module:
    """Build without fetching weights; two models skip a slow initialisation."""
    accepted = inspect.signature(models.get_model_builder(name)).parameters
    asked: dict[str, Any] = {"weights": None, **given}
    if "weights_backbone" in accepted:
        asked["weights_backbone"] = None
    if "init_weights" in accepted or name in ("googlenet", "inception_v3"):
        asked["init_weights"] = False
    module: nn.Module = models.get_model(name, **asked)
    return module


def _torchvision_rows(models: ModuleType, name: str, module: nn.Module | None) -> tuple[ProposedRow, ...]:
    """Propose the sizes that the package's weights were trained on; the builder's folder tells the task."""
    place = models.get_model_builder(name).__module__
    for word, rows in _TORCHVISION_TASKS.items():
        if f".{word}." in place:
            return rows(module)
    transforms = models.get_model_weights(name).DEFAULT.transforms()
    side = next(iter(getattr(transforms, "crop_size", ()) or ()), 224)
    return _picture_rows(module, (3, side, side))


def _picture_rows(module: nn.Module | None, shape: tuple[int, ...]) -> tuple[ProposedRow, ...]:
    name = next(iter(forward_parameters(module)), "x") if module is not None else "x"
    return tuple((ProposedInput(name, (batch, *shape)),) for batch in _BATCHES)


def _detection_rows(_: nn.Module | None) -> tuple[ProposedRow, ...]:
    """Propose images in a list, each of its own size."""
    sides = ((_DETECTION_SIDE, _DETECTION_SIDE), (_DETECTION_SIDE - 64, _DETECTION_SIDE + 64))
    return tuple((ProposedInput("images.0", (3, *size), values=ValueSource.RANDOM),) for size in sides)


def _flow_rows(_: nn.Module | None) -> tuple[ProposedRow, ...]:
    shape = (3, _FLOW_SIDE, _FLOW_SIDE)
    return tuple(tuple(ProposedInput(name, (batch, *shape)) for name in ("image1", "image2")) for batch in _BATCHES)


_TORCHVISION_TASKS: dict[str, Callable[[nn.Module | None], tuple[ProposedRow, ...]]] = {
    "detection": _detection_rows,
    "optical_flow": _flow_rows,
    "segmentation": lambda module: _picture_rows(module, (3, _SEGMENTATION_SIDE, _SEGMENTATION_SIDE)),
    "video": lambda module: _picture_rows(module, (3, _FRAMES, 112, 112)),
}
"""Folder of the builder -> its examples; all other models classify images."""

_COLLECTIONS: dict[str, Collection] = {
    "timm": Collection(
        package="timm",
        names=lambda timm: list(timm.list_models()),
        build=lambda timm, name, **given: timm.create_model(name, pretrained=False, **given),
        rows=_timm_rows,
        function=lambda timm, name: timm.model_entrypoint(name.partition(".")[0]),
    ),
    "torchvision": Collection(
        package="torchvision.models",
        names=lambda models: list(models.list_models()),
        build=_torchvision_build,
        rows=_torchvision_rows,
        function=lambda models, name: models.get_model_builder(name),
    ),
}
