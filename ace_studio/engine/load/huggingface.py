"""A folder that Hugging Face's transformers wrote: configuration, weights, and the class that they belong to.

Everything is read from the folder; nothing is downloaded. The weights are tensors; the folder's own Python runs only
where the model needs it and it was trusted.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ace_studio.engine.load.build_job import BuildJob, Built
from ace_studio.engine.load.description import Description
from ace_studio.engine.load.huggingface_inputs import rows_for
from ace_studio.engine.load.huggingface_step import STEP_ENTRY, as_step, can_step
from ace_studio.engine.load.proposals import examples_of, specs_of
from ace_studio.engine.load.safetensors_header import read_header
from ace_studio.engine.load.sniff import bad_file
from ace_studio.engine.load.state_match import shown
from ace_studio.engine.load.stored_tensors import list_tensors_of_file
from ace_studio.engine.load.tensors import check_holds_tensors_only
from ace_studio.engine.load.torchvision_ops import make_importable
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import EntryPoint, StoredTensor

CONFIG = "config.json"
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SINGLE_FILES = ("model.safetensors", "pytorch_model.bin")
FOLDER_DOORS = (CONFIG, *_INDEXES)
"""Files that stand for their folder when they are opened."""
_LARGEST_CONFIG_BYTES = 10_000_000
_FALLBACK_CLASS = "AutoModel"
_LOAD_ERRORS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, IndexError)
"""What transformers raises for folders that do not fit together."""


@dataclass(frozen=True)
class ModelFolder:
    """The folder, its configuration read."""

    path: Path
    config: Mapping[str, Any]

    @property
    def architectures(self) -> tuple[str, ...]:
        """Names of classes that the configuration gives, the one it was saved from first."""
        names = self.config.get("architectures")
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

    @property
    def model_type(self) -> str:
        """The family: ``bert``, ``llama``; empty if the configuration does not say."""
        return str(self.config.get("model_type") or "")

    @property
    def auto_map(self) -> Mapping[str, str]:
        """``AutoModel`` and so on -> ``file.Class`` of the folder's own code."""
        found = self.config.get("auto_map")
        return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}

    @property
    def needs_its_own_code(self) -> bool:
        """Whether the model is written in the folder, and the installed transformers has none of its type."""
        return bool(self.auto_map) and not _knows_type(self.model_type)

    @property
    def code_files(self) -> tuple[Path, ...]:
        """The Python files of the folder."""
        return tuple(sorted(self.path.glob("*.py")))

    def weight_files(self) -> tuple[Path, ...]:
        """The files that hold the weights, safetensors before pickles; empty if there are none.

        Raises: AceError(BAD_FILE) if an index is damaged or names a file that is not here.
        """
        for index, single in zip(_INDEXES, _SINGLE_FILES, strict=True):
            if (self.path / single).is_file():
                return (self.path / single,)
            if (self.path / index).is_file():
                return self._shards(self.path / index)
        return ()

    def _shards(self, index: Path) -> tuple[Path, ...]:
        table = _read_json(index).get("weight_map")
        if not isinstance(table, dict) or not table:
            raise bad_file(index, "names no file of weights", why="it has no weight_map")
        names = sorted({str(name) for name in table.values()})
        if outside := [name for name in names if Path(name).name != name]:
            raise bad_file(index, f"names a file outside of its folder: {outside[0]}", remedy="do not use this folder")
        if missing := [name for name in names if not (self.path / name).is_file()]:
            raise bad_file(
                index,
                f"names {len(names)} files of weights, of which {len(missing)} are not here",
                why=f"missing: {shown(missing)}",
                remedy="download the rest into the same folder",
            )
        return tuple(self.path / name for name in names)

    def files(self) -> tuple[Path, ...]:
        """Everything that is read."""
        code = self.code_files if self.needs_its_own_code else ()
        return (self.path / CONFIG, *self.weight_files(), *code)


def looks_like_huggingface(folder: Path) -> bool:
    """Whether the folder has a configuration that says of which model it is."""
    try:
        config = _read_json(folder / CONFIG)
    except (AceError, OSError):
        return False
    return "model_type" in config or "architectures" in config


def read_folder(path: Path) -> ModelFolder:
    """Read the configuration. Raises: AceError(BAD_FILE) if it is damaged."""
    return ModelFolder(path, _read_json(path / CONFIG))


def describe_huggingface(path: Path) -> Description:
    """Class, tensors and example inputs, without building anything.

    Raises: AceError(BAD_FILE) if configuration, index or a header is damaged.
    """
    folder = read_folder(path)
    files = folder.weight_files()
    names = ", ".join(folder.architectures) or "no class named"
    notes = [f"a Hugging Face model of type {folder.model_type or 'unknown'}: {names}"]
    notes.append(f"weights in {shown([file.name for file in files])}" if files else "it has no file of weights")
    is_here = find_spec("transformers") is not None
    if not is_here:
        notes.append(f"opening it needs transformers: {_install_line()}")
    would_run: tuple[str, ...] = ()
    if folder.needs_its_own_code:
        would_run = tuple(f"{file.name} from top to bottom" for file in folder.code_files)
        notes.append("it brings Python code of its own, which the installed transformers does not have")
    known = _known_classes(folder) if is_here and not folder.needs_its_own_code else {}
    accepts = _parameters(next(iter(known.values()))) if known else None
    return Description(
        would_run=would_run,
        entries=(*(_entry(name, made) for name, made in known.items()), *_step_entry(known)),
        tensors=tuple(tensor for file in files for tensor in _stored(file)),
        notes=tuple(notes),
        inputs=specs_of(rows_for(folder.config, accepts)),
    )


def build_huggingface(job: BuildJob) -> Built:
    """The class that the configuration names (or the entry), with the folder's weights in float32, and examples.

    Raises: AceError(NOT_INSTALLED) without transformers; AceError(NOT_FOUND) for a class that it does not have;
        AceError(BAD_FILE) if folder and class do not fit together, with what is missing or of another shape.
    """
    folder = read_folder(job.path)
    files = folder.weight_files()
    if not files and not job.has_weights:
        raise bad_file(
            folder.path / CONFIG,
            "lies in a folder without weights",
            why=f"there is none of {', '.join((*_SINGLE_FILES, *_INDEXES))}",
            remedy="download the weights into the same folder, or name a file as [model] weights",
        )
    for file in files:
        check_holds_tensors_only(file)
    transformers = import_transformers()
    is_step = job.entry_word == STEP_ENTRY
    chosen = _find_class(transformers, folder, "" if is_step else job.entry_word)
    with job.library.user.guard(f"Loading {folder.path.name}"), _offline_and_quiet(transformers):
        try:
            module = _load(chosen, folder, job) if files else _without_weights(chosen, folder)
        except _LOAD_ERRORS as error:
            raise _does_not_fit(folder, chosen, error) from error
    for part in module.modules():  # encoder and decoder may have a configuration of their own
        config: Any = getattr(part, "config", None)
        if getattr(config, "use_cache", False):
            config.use_cache = False  # a cache is no tensor, and one call of the model needs none
    if is_step:
        return _step(module, folder)
    rows = rows_for(folder.config, _parameters(module))
    return Built(module.eval(), examples_of(rows, module), files=folder.files())


def _step(module: nn.Module, folder: ModelFolder) -> Built:
    """The model as one step of decoding. Raises: AceError(UNSUPPORTED) if it has no cache of keys and values."""
    try:
        if not can_step(type(module)):
            raise TypeError(f"{type(module).__name__} is no causal language model with a cache")
        step, examples = as_step(module.eval())
    except (AttributeError, TypeError, ImportError) as error:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{type(module).__name__} cannot be opened as one step of decoding",
            why=str(error),
            remedy="leave [model] entry out, or write a module of your own around it that takes and gives the cache",
            where=str(folder.path),
        ) from error
    return Built(step, examples, files=folder.files())


def import_transformers() -> ModuleType:
    """The package, imported. Raises: AceError(NOT_INSTALLED)."""
    make_importable()
    try:
        with _silence():
            return importlib.import_module("transformers")
    except (ImportError, RuntimeError, OSError) as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == "transformers"
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            f"transformers {'is not installed' if is_missing else 'cannot be imported'}",
            why="a Hugging Face folder holds configuration and weights; the classes are in transformers"
            if is_missing
            else str(error)[:300],
            remedy=_install_line(),
        ) from error


def _install_line() -> str:
    return f"{sys.executable} -m pip install transformers"


# --- the class ---


def _find_class(transformers: ModuleType, folder: ModelFolder, entry: str) -> Any:
    """The entry, else the first architecture that transformers has, else the plain model of the family."""
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
    """The class of that name, imported only now; None if there is none."""
    with _silence():
        return getattr(transformers, name, None) if name.isidentifier() else None


def _remote_class(folder: ModelFolder, entry: str) -> str:
    """Which of the automatic classes to use: those that the folder's code is registered for."""
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


def _knows_type(model_type: str) -> bool:
    """Whether the installed transformers has the family, without importing it."""
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations or not model_type.replace("-", "_").isidentifier():
        return False
    return (Path(next(iter(spec.submodule_search_locations))) / "models" / model_type.replace("-", "_")).is_dir()


def _known_classes(folder: ModelFolder) -> dict[str, type[nn.Module]]:
    """The architectures of the configuration that transformers has."""
    try:
        transformers = import_transformers()
    except AceError:
        return {}
    found = {name: _class_of(transformers, name) for name in folder.architectures}
    return {name: made for name, made in found.items() if isinstance(made, type) and issubclass(made, nn.Module)}


def _entry(name: str, made: type[nn.Module]) -> EntryPoint:
    """A class as an entry to choose."""
    summary = (inspect.getdoc(made) or "").strip().partition("\n")[0]
    return EntryPoint(name=name, line=0, kind="class", signature="(config)", summary=summary, is_module=True)


def _step_entry(known: Mapping[str, type[nn.Module]]) -> list[EntryPoint]:
    """The entry for one step of decoding, if one of the classes can."""
    if not any(can_step(made) for made in known.values()):
        return []
    summary = "One step of decoding, with the cache as an input and an output."
    return [EntryPoint(name=STEP_ENTRY, line=0, kind="class", signature="(config)", summary=summary)]


def _parameters(owner: Any) -> frozenset[str]:
    return frozenset(inspect.signature(owner.forward).parameters)


# --- the weights ---


def _load(chosen: Any, folder: ModelFolder, job: BuildJob) -> nn.Module:
    module, account = chosen.from_pretrained(
        str(folder.path),
        local_files_only=True,
        trust_remote_code=folder.needs_its_own_code,
        output_loading_info=True,
        dtype=torch.float32,
    )
    missing, unexpected = (sorted(account.get(f"{kind}_keys") or ()) for kind in ("missing", "unexpected"))
    wanted = sum(1 for _ in module.state_dict())
    if missing and 2 * len(missing) > wanted and not job.has_weights:
        raise bad_file(
            folder.path,
            f"does not hold the weights of {type(module).__name__}",
            why=f"{len(missing)} of {wanted} are missing ({shown(missing)}); {len(unexpected)} are unknown to it"
            + (f" ({shown(unexpected)})" if unexpected else ""),
            remedy="name the class that it was saved from as the entry, such as AutoModelForSequenceClassification",
        )
    if missing and not job.has_weights:
        job.reporter.warn(
            "weights-missing",
            f"{len(missing)} of the {wanted} tensors of {type(module).__name__} are not in {folder.path.name} and have "
            f"random values: {shown(missing)}",
            where=str(folder.path),
        )
    if unexpected:
        job.reporter.warn(
            "weights-left-out",
            f"{len(unexpected)} tensors of {folder.path.name} are no part of {type(module).__name__} and were left "
            f"out: {shown(unexpected)}",
            where=str(folder.path),
        )
    return _as_module(module)


def _without_weights(chosen: Any, folder: ModelFolder) -> nn.Module:
    """The class with random weights; the recipe's own weights follow."""
    transformers = import_transformers()
    trust = {"trust_remote_code": folder.needs_its_own_code}
    config = transformers.AutoConfig.from_pretrained(str(folder.path), local_files_only=True, **trust)
    if hasattr(chosen, "from_config"):
        return _as_module(chosen.from_config(config, **trust))
    return _as_module(chosen(config))


def _as_module(made: Any) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise TypeError(f"{type(made).__name__} is no module of torch")
    return made


def _does_not_fit(folder: ModelFolder, chosen: Any, error: Exception) -> AceError:
    text = " ".join(str(error).split())
    remedy = "check that the folder is complete, and that its class is right; name another one as the entry"
    if "mismatch" in text or "size" in text:
        remedy = "config.json and the weights have different sizes; take both from the same place"
    return bad_file(
        folder.path,
        f"could not be loaded as {chosen.__name__}",
        why=f"{type(error).__name__}: {text[:300]}",
        remedy=remedy,
        details=str(error),
    )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No warnings of packages that transformers imports along: about libraries that they can do without."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _offline_and_quiet(transformers: ModuleType) -> Iterator[None]:
    """No download, no progress bar, no advice on the log: what matters is reported in our words."""
    chatter = transformers.utils.logging
    level, had_bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        with _silence():
            yield
    finally:
        chatter.set_verbosity(level)
        if had_bars:
            chatter.enable_progress_bar()
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]


# --- files ---


def _read_json(path: Path) -> dict[str, Any]:
    """Raises: AceError(BAD_FILE) if it is no table in JSON; OSError."""
    with path.open("rb") as file:
        raw = file.read(_LARGEST_CONFIG_BYTES)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise bad_file(path, "is not valid JSON", why=str(error)[:200]) from error
    if not isinstance(content, dict):
        raise bad_file(path, "is not a table in JSON", why=f"it is a {type(content).__name__}")
    return content


def _stored(file: Path) -> Sequence[StoredTensor]:
    return read_header(file)[0] if file.suffix == ".safetensors" else list_tensors_of_file(file)
