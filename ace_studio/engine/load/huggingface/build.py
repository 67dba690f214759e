"""Builds a folder's model class with its weights, and reports weights that do not fit."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ace_studio.engine.load.huggingface.classes import entry_of, find_class, known_classes, step_entries
from ace_studio.engine.load.huggingface.folder import CONFIG, INDEXES, SINGLE_FILES, ModelFolder, read_folder
from ace_studio.engine.load.huggingface.inputs import config_rows, parameters_of
from ace_studio.engine.load.huggingface.library import import_transformers, install_line, offline_and_quiet
from ace_studio.engine.load.huggingface.step import STEP_ENTRY, as_step, can_step
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.proposals import examples_of, specs_of
from ace_studio.engine.load.sniff import bad_file
from ace_studio.engine.load.state_match import shown
from ace_studio.engine.load.stored_tensors import list_tensors_of_file
from ace_studio.engine.load.tensors import check_holds_tensors_only
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import FileFacts

_LOAD_ERRORS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, IndexError)
"""Errors that transformers raises for inconsistent folders."""


def describe_huggingface(path: Path) -> FileFacts:
    """Describe class, tensors and example inputs.

    Raises: AceError(BAD_FILE) if configuration, index or a header is damaged.
    """
    folder = read_folder(path)
    files = folder.weight_files()
    names = ", ".join(folder.architectures) or "no class named"
    notes = [f"a Hugging Face model of type {folder.model_type or 'unknown'}: {names}"]
    notes.append(f"weights in {shown([file.name for file in files])}" if files else "it has no file of weights")
    is_here = find_spec("transformers") is not None
    if not is_here:
        notes.append(f"opening it needs transformers: {install_line('transformers')}")
    would_run: tuple[str, ...] = ()
    if folder.needs_its_own_code:
        would_run = tuple(f"{file.relative_to(path)} from top to bottom" for file in folder.code_files)
        notes.append("it brings Python code of its own, which the installed transformers does not have")
    known = known_classes(folder) if is_here and not folder.needs_its_own_code else {}
    accepts = parameters_of(next(iter(known.values()))) if known else None
    return FileFacts(
        would_run=would_run,
        entries=(*(entry_of(name, made) for name, made in known.items()), *step_entries(known)),
        tensors=tuple(tensor for file in files for tensor in list_tensors_of_file(file)),
        notes=tuple(notes),
        loads_weights=bool(files),
        inputs=specs_of(config_rows(folder.facts, accepts)),
    )


def build_huggingface(job: LoadJob) -> OpenedModel:
    """Build the class that the entry or the configuration names, with the folder's weights in float32, and examples.

    Raises: AceError(NOT_INSTALLED) without transformers; AceError(NOT_FOUND) for a class that it does not have;
        AceError(BAD_FILE) if folder and class do not fit together, with what is missing or of another shape.
    """
    folder = read_folder(job.path)
    files = folder.weight_files()
    if not files and not job.has_weights:
        raise bad_file(
            folder.path / CONFIG,
            "lies in a folder without weights",
            why=f"there is none of {', '.join((*SINGLE_FILES, *INDEXES))}",
            remedy="download the weights into the same folder, or name a file as [model] weights",
        )
    for file in files:
        check_holds_tensors_only(file)
    folder.check_names()
    transformers = import_transformers()
    is_step = job.entry_word == STEP_ENTRY
    chosen = find_class(transformers, folder, "" if is_step else job.entry_word)
    runs_code = folder.needs_its_own_code
    with job.library.user.guard(f"Loading {folder.path.name}"), offline_and_quiet(transformers, runs_code=runs_code):
        try:
            module = _load(chosen, folder, job) if files else _without_weights(chosen, folder)
        except Exception as error:  # the configuration check of newer releases has errors of its own
            if not isinstance(error, (*_LOAD_ERRORS, *_strict_errors())):
                raise
            raise _does_not_fit(folder, chosen, error) from error
    for part in module.modules():  # encoder and decoder may have a configuration of their own
        config: Any = getattr(part, "config", None)
        if getattr(config, "use_cache", False):
            config.use_cache = False  # a cache is no tensor, and one call of the model needs none
    if is_step:
        return _step(module, folder)
    rows = config_rows(folder.facts, parameters_of(module))
    return OpenedModel(module.eval(), examples_of(rows, module), are_made_up=True, files=folder.files())


def _step(module: nn.Module, folder: ModelFolder) -> OpenedModel:
    """Open the model as one step of decoding. Raises: AceError(UNSUPPORTED) if it has no cache of keys and values."""
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
    return OpenedModel(step, examples, are_made_up=True, files=folder.files())


def _load(chosen: Any, folder: ModelFolder, job: LoadJob) -> nn.Module:
    module, loading = chosen.from_pretrained(
        str(folder.path),
        local_files_only=True,
        trust_remote_code=folder.needs_its_own_code,
        output_loading_info=True,
        dtype=torch.float32,
    )
    missing, unexpected = (sorted(loading.get(f"{kind}_keys") or ()) for kind in ("missing", "unexpected"))
    total = len(module.state_dict())
    if missing and 2 * len(missing) > total and not job.has_weights:
        raise bad_file(
            folder.path,
            f"does not hold the weights of {type(module).__name__}",
            why=f"{len(missing)} of {total} are missing ({shown(missing)}); {len(unexpected)} are unknown to it"
            + (f" ({shown(unexpected)})" if unexpected else ""),
            remedy="name the class that it was saved from as the entry, such as AutoModelForSequenceClassification",
        )
    if missing and not job.has_weights:
        job.reporter.warn(
            "weights-missing",
            f"{len(missing)} of the {total} tensors of {type(module).__name__} are not in {folder.path.name} and have "
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
    """Build the class with random weights; the recipe's weights are loaded later."""
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


def _strict_errors() -> tuple[type[Exception], ...]:
    """What newer releases raise for values of a wrong type in the configuration."""
    from huggingface_hub import errors  # noqa: PLC0415 - optional package, with transformers

    found = getattr(errors, "StrictDataclassError", None)
    return () if found is None else (found,)


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
