"""Keys of the capture cache, and digests that tell whether a model behind a key has changed."""

import hashlib
import inspect
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.examples.leaves import structure
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.own_code import own_code
from ace_studio.engine.user_files import is_user_file

_FORMAT = 1
"""Version of the entries; entries of another version are not found."""
_CODE_OF_CAPTURE = ("capture", "examples", "ops", "shapes", "torch_private")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{6,}\b")
_REGISTERED = ("_parameters", "_buffers", "_modules")
_SIMPLE = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


def cache_key(loaded: LoadedModel, examples: Sequence[Example], *, fingerprint: str) -> str:
    """The name of a capture in the cache.

    It covers the files (``fingerprint``, which also covers options, torch and device), this program, Python, the code
    and packages of the model's classes, the model's structure with its plain attributes, and the form of the examples.
    It leaves out the numbers in weights and examples: a graph does not hold them, and `content_digest` covers them.
    """
    digest = hashlib.sha256(f"{_FORMAT} {fingerprint} {loaded.source}".encode("utf-8", "surrogateescape"))
    for text in (own_code(*_CODE_OF_CAPTURE), platform.python_version(), _structure_of(loaded.module)):
        digest.update(text.encode("utf-8", "surrogateescape"))
    for line in (*_code_lines(loaded.module), *_example_lines(examples)):
        digest.update(f"\n{line}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def content_digest(module: nn.Module, examples: Sequence[Example]) -> str:
    """SHA-256 of the numbers in the model's state and in the examples."""
    digest = hashlib.sha256()
    for name, tensor in own_tensors(module).items():
        digest.update(name.encode())
        _add_tensor(digest, tensor)
    for example in examples:
        for tensor in example.tensors():
            _add_tensor(digest, tensor)
    return digest.hexdigest()


def own_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by every name that they have."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def late_files(loaded: LoadedModel) -> dict[str, str]:
    """Path -> SHA-256 of the user's files that forward imported, after the model was loaded."""
    if not loaded.source.name:
        return {}
    known = {path.resolve() for path in loaded.files}
    home = loaded.source.resolve().parent
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        path = Path(file).resolve() if isinstance(file, str) else None
        if path is None or path in known or "site-packages" in path.parts:
            continue
        if path.is_relative_to(home) and is_user_file(str(path)):
            found[str(path)] = file_digest(path)
    return found


def file_digest(path: Path) -> str:
    """SHA-256 of a file; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _structure_of(module: nn.Module) -> str:
    """Classes, parameters and plain attributes, as text."""
    lines = [_ADDRESS.sub("", repr(module))]
    for path, child in module.named_modules(remove_duplicate=False):
        kind = type(child)
        lines.append(f"{path}: {kind.__module__}.{kind.__qualname__} training={child.training}")
        plain = {name: value for name, value in vars(child).items() if name not in _REGISTERED and _is_plain(value)}
        lines += [f"  {name}={_plain_text(value)}" for name, value in sorted(plain.items())]
    tensors = own_tensors(module).items()
    lines += [f"{name} {tensor.dtype} {tuple(tensor.shape)} {tensor.requires_grad}" for name, tensor in tensors]
    return "\n".join(lines)


def _is_plain(value: Any) -> bool:
    return all(isinstance(leaf, (*_SIMPLE, Tensor)) for leaf in pytree.tree_leaves(value))


def _plain_text(value: Any) -> str:
    leaves, spec = pytree.tree_flatten(value)
    return f"{spec} {[_leaf_text(leaf) for leaf in leaves]}"


def _leaf_text(leaf: Any) -> str:
    if not isinstance(leaf, Tensor):
        return f"{type(leaf).__name__} {leaf!r}"
    digest = hashlib.sha256()
    _add_tensor(digest, leaf)
    return digest.hexdigest()


def _code_lines(module: nn.Module) -> Iterator[str]:
    """The files of the model's classes outside torch, and the versions of the packages that they are from."""
    names = sorted({base.__module__ for child in module.modules() for base in type(child).__mro__})
    for package in sorted({name.partition(".")[0] for name in names} - {"builtins", "torch"}):
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    for name in names:
        if name.partition(".")[0] not in ("torch", "builtins", "abc", "typing") and name in sys.modules:
            yield f"{name} {_source_digest(sys.modules[name])}"


def _source_digest(module: Any) -> str:
    try:
        file = inspect.getsourcefile(module)
    except TypeError:  # built in
        return ""
    return file_digest(Path(file)) if file else ""


def _example_lines(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield _ADDRESS.sub("", str(structure(example)))
        for leaf in pytree.tree_leaves((example.args, dict(example.kwargs))):
            is_tensor = isinstance(leaf, Tensor)
            yield f"{leaf.dtype} {tuple(leaf.shape)} {leaf.stride()}" if is_tensor else _ADDRESS.sub("", repr(leaf))


def _add_tensor(digest: Any, tensor: Tensor) -> None:
    if nn.parameter.is_lazy(tensor):
        return  # it has neither a shape nor numbers before the first call
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
    if tensor.layout is torch.strided and not tensor.is_meta:
        plain = tensor.detach().cpu().contiguous().flatten()
        digest.update(plain.view(torch.uint8).numpy() if plain.numel() else b"")
