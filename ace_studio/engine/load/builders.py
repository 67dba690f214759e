"""Makes a live module from each kind of file: the ``build`` functions of the loader registry."""

import inspect
import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.reader import MAX_EXAMPLES, counted
from ace_studio.engine.flow import Example, put_in_eval_mode
from ace_studio.engine.load.archive import open_archive
from ace_studio.engine.load.callables import CallableReference, CodeFile, describe_value
from ace_studio.engine.load.exported import examples_of_program
from ace_studio.engine.load.huggingface import looks_like_huggingface, read_folder
from ace_studio.engine.load.huggingface.folder import CONFIG
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.refused import newer_container, opening
from ace_studio.engine.load.roles import loads_weights, trains
from ace_studio.engine.load.sniff import ZIP_MAGIC, bad_file, read_head
from ace_studio.engine.load.tensors import WRAPPINGS, check_holds_tensors_only, find_state_dicts, read_state_dicts
from ace_studio.engine.load.torchscript.program import with_parts_written
from ace_studio.engine.load.weights import load_weights
from ace_studio.records.errors import AceError, ErrorCode


def build_from_entry(job: LoadJob) -> OpenedModel:
    """Call the entry of a ``.py`` file.

    Raises: AceError(NOT_FOUND, RECIPE or USER_CODE) if it is not there, needs arguments, raises, or makes no module.
    """
    assert job.entry is not None, "the loader chooses an entry for Python sources"
    target = job.library.find(job.entry)
    doing = f"{job.entry.name}() in {job.entry.path.name}"
    code = job.library.files[job.entry.path]
    is_new = isinstance(target, type) or _is_just_made(target, code)
    if callable(target) and not isinstance(target, nn.Module):
        _check_needs_nothing(target, job.entry)
        with job.library.user.guard(doing):
            target = target()
    built = _interpret(target, job, doing)
    has_parameters = next(built.module.parameters(), None) is not None
    if is_new and has_parameters and not loads_weights(code.source.tree):
        job.warn_of_random_weights(job.entry.name, where=str(job.entry.path))
    return built


def _is_just_made(target: Any, code: CodeFile) -> bool:
    """Whether a variable holds a module of a class of its file, which does not train it."""
    classes = {one.name for one in code.entries if one.is_module}
    return isinstance(target, nn.Module) and type(target).__name__ in classes and not trains(code.source.tree)


def build_from_weights(job: LoadJob) -> OpenedModel:
    """Call the factory and load the source's weights into its module."""
    if job.entry is None:
        check_holds_tensors_only(job.path)
        remedy = "name the function that makes the module: entry = 'model.py:make_model'"
        if looks_like_huggingface(job.path.parent):
            remedy = f"open its folder, {job.path.parent.name}: that is a Hugging Face model; or {remedy}"
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{job.path.name} holds weights alone, not a model",
            why="weights are numbers; the code that uses them has to come from a factory",
            remedy=remedy,
            where=str(job.path),
        )
    weights = read_state_dicts(job.path)
    built = build_from_entry(replace(job, has_weights=True))
    load_weights(built.module, weights, job.path, reporter=job.reporter)
    return built


def build_from_pickle(job: LoadJob) -> OpenedModel:
    """Unpickle a whole module; from a training checkpoint, load the weights into the factory's module instead."""
    if read_head(job.path).startswith(ZIP_MAGIC):
        open_archive(job.path).check_content()
    content = _unpickle(job)
    module = _find_module(content)
    if module is not None:
        return _interpret(module, job, f"Loading {job.path.name}")
    weights = find_state_dicts(content)
    if weights and job.entry is not None:
        built = build_from_entry(replace(job, has_weights=True))
        load_weights(built.module, weights, job.path, reporter=job.reporter)
        return built
    remedy = "name the function that makes the module: entry = 'model.py:make_model'"
    raise bad_file(
        job.path,
        "holds no module",
        why=f"it holds {describe_value(content)}",
        remedy=remedy if weights else "save the module itself, or its state_dict()",
    )


def build_from_exported_program(job: LoadJob) -> OpenedModel:
    """Open an exported program; the inputs that it was exported with become examples."""
    open_archive(job.path).check_content()
    with job.library.user.guard(f"Opening {job.path.name}"), opening(job.path):
        return _from_program(torch.export.load(job.content))


def refuse_folder(job: LoadJob) -> OpenedModel:
    """Refuse a folder that is no Hugging Face model.

    Raises: AceError(BAD_FILE) if its configuration is damaged; AceError(UNSUPPORTED) if it has none.
    """
    if os.path.lexists(job.path / CONFIG):
        read_folder(job.path)
    raise AceError.of(
        ErrorCode.UNSUPPORTED,
        f"The folder {job.path.name} cannot be opened as a model",
        why="it is no Hugging Face model: those have a config.json with a model_type",
        remedy="open one of its files, or write a .py file with a function that returns the module",
        where=str(job.path),
    )


def _check_needs_nothing(target: Any, entry: CallableReference) -> None:
    try:
        signature = inspect.signature(target)
    except (ValueError, TypeError):
        return
    try:
        signature.bind()
    except TypeError as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{entry.name}{signature} in {entry.path.name} cannot be called without arguments",
            why=str(error),
            remedy=f"write a function without arguments that returns {entry.name}(...), and name that as the entry",
            where=str(entry.path),
        ) from error


def _interpret(value: Any, job: LoadJob, doing: str) -> OpenedModel:
    """Take ``module`` or ``(module, examples)``, where examples is one example or a list of them.

    Of a generator, which may be endless, as many are taken as of a tracing function.
    """
    examples: Any = ()
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], nn.Module):
        value, examples = value
    if isinstance(value, torch.export.ExportedProgram):
        return _from_program(value)
    if not isinstance(value, nn.Module):
        raise _not_a_module(value, doing)
    with job.library.user.guard(doing):
        if isinstance(examples, Iterator):
            examples = list(islice(counted(examples, doing, str(job.path)), MAX_EXAMPLES))
        listed = examples if isinstance(examples, list) else [] if examples == () else [examples]
        put_in_eval_mode(value)
        module, reference = with_parts_written(value, job.path)
        put_in_eval_mode(module)
    return OpenedModel(module, tuple(Example.of(item) for item in listed), reference=reference)


def _from_program(program: torch.export.ExportedProgram) -> OpenedModel:
    """The module of an exported program, which has no eval mode: it was exported in one."""
    return OpenedModel(program.module(), examples_of_program(program))


def _not_a_module(value: Any, doing: str) -> AceError:
    remedy = "return the nn.Module, or (module, example inputs)"
    if isinstance(value, type) and issubclass(value, nn.Module):
        remedy = f"return an object of it: {value.__name__}(...)"
    elif isinstance(value, tuple) and value and isinstance(value[0], nn.Module):
        remedy = "return (module, (input, input, ...)): the inputs together in one tuple"
    elif isinstance(value, Mapping) and any(isinstance(item, Tensor) for item in value.values()):
        remedy = "that is a state dict: return the module, and name the file as [model] weights"
    elif value is None:
        remedy = "end the function with `return model`"
    return AceError.of(
        ErrorCode.USER_CODE, f"{doing} returned no module", why=f"it returned {describe_value(value)}", remedy=remedy
    )


def _find_module(content: Any) -> nn.Module | None:
    """The saved module, itself or under a usual key of a checkpoint; a running average is taken last."""
    if isinstance(content, nn.Module):
        return content
    values = [content.get(key) for key in WRAPPINGS] if isinstance(content, Mapping) else []
    return next((value for value in values if isinstance(value, nn.Module)), None)


def _unpickle_header(file: Any, **options: Any) -> Any:
    """The ``pickle.load`` that torch calls for the header of its old format."""
    return pickle.Unpickler(file, **options).load()  # noqa: S301 - behind the trust gate


def _unpickle(job: LoadJob) -> Any:
    """``torch.load`` with code allowed; the caller has checked that the file is trusted.

    Classes that the pickle looks for in ``__main__`` are taken from the entry's file if there is one.
    """
    home = job.library.module_of(job.entry) if job.entry is not None else None

    class Unpickler(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str, /) -> Any:
            if module_name == "__main__" and hasattr(home, global_name):
                return getattr(home, global_name)
            return super().find_class(module_name, global_name)

    reader = SimpleNamespace(__name__="pickle", Unpickler=Unpickler, load=_unpickle_header)
    with job.library.user.guard(f"Loading {job.path.name}", folder=job.path.parent):
        try:
            return torch.load(  # noqa: TID251 - trusted, and a whole module cannot be read otherwise
                job.content, map_location="cpu", weights_only=False, pickle_module=reader
            )
        except RuntimeError as error:
            raise newer_container(job.path, str(error)) or error from None
        except (ModuleNotFoundError, AttributeError) as error:
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"{job.path.name} needs a class that is not here",
                why=str(error)[:300],
                remedy="put the .py file with the class beside it; if the class was defined in the training script, "
                "name it: entry = 'script.py:ClassName'",
                where=str(job.path),
            ) from error
