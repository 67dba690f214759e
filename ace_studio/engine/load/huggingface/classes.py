"""Finds the class, in transformers or in the folder's own code, that a folder's weights belong to."""

import difflib
import inspect
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from torch import nn

from ace_studio.engine.load.huggingface.folder import CONFIG, ModelFolder
from ace_studio.engine.load.huggingface.library import import_transformers, silence
from ace_studio.engine.load.huggingface.step import STEP_ENTRY, can_step
from ace_studio.engine.load.sniff import bad_file
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import EntryPoint

_FALLBACK_CLASS = "AutoModel"
_SENTENCE_END = re.compile(r"(?<=[^A-Z]\.)(?<!e\.g\.) (?=[A-Z])")
"""Not the dot of an initial or of "e.g."."""


def find_class(transformers: ModuleType, folder: ModelFolder, entry: str) -> Any:
    """Find the entry, else the first architecture that transformers has, else the family's base model."""
    if folder.needs_its_own_code:
        return _class_of(transformers, _remote_class(folder, entry))
    for name in (entry,) if entry else (*folder.architectures, _FALLBACK_CLASS):
        found = _class_of(transformers, name)
        if isinstance(found, type) and hasattr(found, "from_pretrained"):
            return found
    known = [name for name in dir(transformers) if "Model" in name or "For" in name]
    close = difflib.get_close_matches(entry, known, n=3, cutoff=0.5)
    raise AceError.of(
        ErrorCode.NOT_FOUND,
        f"transformers {transformers.__version__} has no model class '{entry}'",
        why=f"the entry of a Hugging Face folder is a class of transformers; its own is "
        f"{', '.join(folder.architectures) or 'not named'}",
        remedy=f"did you mean '{close[0]}'?" if close else "remove [model] entry, or write AutoModelFor...",
        where=str(folder.path),
    )


def _class_of(transformers: ModuleType, name: str) -> Any:
    """The class of that name, which transformers imports on access; None if there is none."""
    with silence():
        return getattr(transformers, name, None) if name.isidentifier() else None


def _remote_class(folder: ModelFolder, entry: str) -> str:
    """Choose among the ``AutoModel`` classes that the folder's code is registered for."""
    elsewhere = [value for value in folder.auto_map.values() if "--" in value]
    if elsewhere:
        raise bad_file(
            folder.path / CONFIG,
            "needs code that is not in the folder",
            why=f"it names {elsewhere[0]}, which would have to be downloaded",
            remedy="download that .py file into the folder and take the part up to -- out of auto_map",
        )
    models = [key for key in folder.auto_map if key.startswith("AutoModel")]
    if entry and entry not in models:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"The code of {folder.path.name} is not registered for '{entry}'",
            why=f"its auto_map has {', '.join(models) or 'no model'}",
            remedy=f"name one of them, or none: entry = '{(models or [_FALLBACK_CLASS])[0]}'",
            where=str(folder.path),
        )
    specific = [name for name in models if name != _FALLBACK_CLASS]
    return entry or (specific or [_FALLBACK_CLASS])[0]


def known_classes(folder: ModelFolder) -> dict[str, type[nn.Module]]:
    """The architectures of the configuration that transformers has."""
    try:
        transformers = import_transformers()
    except AceError:
        return {}
    found = {name: _class_of(transformers, name) for name in folder.architectures}
    return {name: made for name, made in found.items() if isinstance(made, type) and issubclass(made, nn.Module)}


def entry_of(name: str, made: type[nn.Module]) -> EntryPoint:
    """The entry point for a class."""
    paragraph = " ".join((inspect.getdoc(made) or "").strip().partition("\n\n")[0].split())
    summary = _SENTENCE_END.split(paragraph, maxsplit=1)[0]
    return EntryPoint(name=name, line=0, kind="class", signature="(config)", summary=summary, is_module=True)


def step_entries(known: Mapping[str, type[nn.Module]]) -> list[EntryPoint]:
    """The entry point for one step of decoding, if one of the classes supports it."""
    if not any(can_step(made) for made in known.values()):
        return []
    summary = "One step of decoding, with the cache as an input and an output."
    return [EntryPoint(name=STEP_ENTRY, line=0, kind="class", signature="(config)", summary=summary)]
