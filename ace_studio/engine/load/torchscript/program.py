"""Opens TorchScript: translates its graph to Python on a plain module, and checks that both give equal results."""

import contextlib
import copy
import linecache
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example, LoadedModel, put_in_eval_mode, tensor_leaves
from ace_studio.engine.load.archive import open_archive
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.refused import opening
from ace_studio.engine.load.torchscript import runtime
from ace_studio.engine.load.torchscript.operators import UntranslatableError
from ace_studio.engine.load.torchscript.source import MethodSource, attribute_of, write_method
from ace_studio.records.errors import AceError, ErrorCode


def build_from_torchscript(job: LoadJob) -> OpenedModel:
    """Load the script, and translate every method that forward reaches to Python.

    Raises: AceError(BAD_FILE) if the file is damaged; AceError(UNSUPPORTED) naming the statement that has no Python.
    """
    open_archive(job.path).check_content()
    with job.library.user.guard(f"Loading {job.path.name}"), opening(job.path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".torch.jit")  # torch advises to make no new ones
        script = torch.jit.load(job.content, map_location="cpu")  # type: ignore[no-untyped-call]
    put_in_eval_mode(script)
    return OpenedModel(written_as_python(script, job.path).eval(), reference=script)


def with_parts_written(module: nn.Module, path: Path) -> tuple[nn.Module, nn.Module | None]:
    """Translate every TorchScript part of a module to Python; return the module and its original.

    The original is None if there is no such part. A part that cannot be translated stays; capture then reports it.
    """
    if isinstance(module, torch.jit.ScriptModule):
        return written_as_python(module, path), module
    parts: dict[str, torch.jit.ScriptModule] = {}
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule) and not any(name.startswith(f"{outer}.") for outer in parts):
            parts[name] = part
    if not parts:
        return module, None
    original = copy.deepcopy(module)
    for name, part in parts.items():
        with contextlib.suppress(AceError):
            module.set_submodule(name, written_as_python(part, path))
    return module, original


def without_script(module: nn.Module) -> tuple[nn.Module, nn.Module | None]:
    """Return a module, translated to Python if it is a script, and the script or None.

    Raises: AceError(UNSUPPORTED) naming the statement that has no counterpart.
    """
    if isinstance(module, torch.jit.ScriptModule):
        return written_as_python(module, Path("the script")).eval(), module
    return module, None


def written_as_python(script: torch.jit.ScriptModule, path: Path) -> nn.Module:
    """Translate the script to a plain module that shares its tensors.

    Raises: AceError(UNSUPPORTED) naming the statement that has no counterpart.
    """
    try:
        module = _mirror(script, path)
        _write_methods(module, script, path)
    except UntranslatableError as error:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{path.name} does something that cannot be written as Python: {error}",
            why="neither torch.export nor dynamo reads TorchScript, so its graph is translated first, and this "
            "statement has no counterpart",
            remedy="open the Python code it was made from, with its weights, or a .pt2 from torch.export.save",
            where=str(path),
        ) from error
    return module


def check_translation(loaded: LoadedModel, examples: Sequence[Example]) -> None:
    """Check that a translated module gives the results of its original on every example.

    Raises: AceError(NOT_CAPTURED) with the difference; AceError(USER_CODE) if the original itself fails.
    """
    if loaded.reference is None:
        return
    name = loaded.source.name
    for number, example in enumerate(examples, start=1):
        device = next((tensor.device for tensor in example.tensors()), torch.device("cpu"))
        try:
            expected = tensor_leaves(example.copied().call(loaded.reference.to(device)))
        except (RuntimeError, torch.jit.Error) as error:
            raise AceError.of(
                ErrorCode.USER_CODE,
                f"The TorchScript program in {name} does not run on example {number}",
                why=" ".join(str(error).split())[-300:],
                remedy="give inputs of the types and sizes that it takes",
                details=str(error),
            ) from error
        actual = tensor_leaves(example.copied().call(loaded.module))
        try:
            torch.testing.assert_close(actual, expected, equal_nan=True)
        except AssertionError as error:
            raise AceError.of(
                ErrorCode.NOT_CAPTURED,
                f"The Python translation of {name} and the program give different results on example {number}",
                why=" ".join(str(error).split())[:300],
                remedy="open the Python code it was made from; a program that draws random numbers cannot be compared",
                where=str(loaded.source),
            ) from error


class FromScript(nn.Module):
    """A module of the script: same parameters, buffers and children, with translated methods."""


def _mirror(script: nn.Module, path: Path) -> FromScript:
    """Copy the tree of modules without methods; tensors are shared with the script."""
    name = re.sub(r"\W", "_", getattr(script, "original_name", "") or type(script).__name__)
    module: FromScript = type(name, (FromScript,), {"__module__": FromScript.__module__})()
    for key, parameter in script.named_parameters(recurse=False):
        module.register_parameter(key, nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad))
    for key, buffer in script.named_buffers(recurse=False):
        module.register_buffer(key, buffer)
    for key, child in script.named_children():
        module.add_module(key, _mirror(child, path))
    return module


def _write_methods(root: FromScript, script: torch.jit.ScriptModule, path: Path) -> None:
    """Translate forward and every method that it reaches."""
    waiting: list[tuple[tuple[str, ...], str]] = [((), "forward")]
    done: set[tuple[tuple[str, ...], str]] = set()
    while waiting:
        place, name = waiting.pop()
        if (place, name) in done:
            continue
        done.add((place, name))
        owner, original = attribute_of(root, place), attribute_of(script, place)
        source = write_method(original, name)
        _add_method(owner, name, source, f"{path}.{'.'.join((*place, name))}.py")
        waiting += [((*place, *child), called) for child, called in source.calls]


def _add_method(owner: FromScript, name: str, source: MethodSource, filename: str) -> None:
    for key, value in source.constants.items():
        _keep(owner, key, value)
    for place, value in source.attributes.items():
        holder = attribute_of(owner, place[:-1])
        if not hasattr(holder, place[-1]):
            _keep(holder, place[-1], value)
    linecache.cache[filename] = (len(source.text), None, source.text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"torch": torch, "runtime": runtime}
    exec(compile(source.text, filename, "exec"), scope)
    setattr(type(owner), name, scope[name])


def _keep(owner: nn.Module, name: str, value: Any) -> None:
    """Set an attribute; a tensor becomes a buffer outside of the state dict, so that it moves with the module."""
    if isinstance(value, Tensor):
        owner.register_buffer(name, value.detach(), persistent=False)
    else:
        setattr(owner, name, value)
