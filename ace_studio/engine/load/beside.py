"""Finds weights beside code, and code beside weights: files whose tensors a class of the code seems to have.

The names are compared with the attributes that a class assigns; whether every shape fits is checked when the weights
are loaded.
"""

import ast
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ace_studio.engine.load.entries import PythonSource, parse_source, read_source, with_bases
from ace_studio.engine.load.identify import identify
from ace_studio.engine.load.roles import dotted
from ace_studio.engine.load.state_match import unwrapped
from ace_studio.engine.load.stored_tensors import list_tensors_of_file
from ace_studio.records.errors import AceError
from ace_studio.records.messages import WEIGHTS_ALONE, StoredTensor
from ace_studio.records.shards import INDEX_SUFFIX, shard_files

_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")
_FOLDERS = ("", "weights", "checkpoints", "models")
_MOST_FILES = 24
_MOST_CLASSES = 500
_PLAIN = re.compile(
    r"(ReLU6?|ELU|GELU|SiLU|Mish|Hardswish|Hardsigmoid|Sigmoid|Tanh|Softmax|LogSoftmax|Dropout\dd|Dropout|Pool\dd|Flatten|"
    r"Unflatten|Upsample|PixelShuffle|Identity|Loss|^int|^float|^len|^list|^dict|^tuple|^partial)$"
)
"""Calls that make nothing with parameters."""
_DEEPEST_PREFIX = 2
"""How many keys a checkpoint may wrap around its tensors: ``state_dict``, ``model.module``."""


def weights_beside(source: PythonSource) -> tuple[Path, ...]:
    """Files of weights in the folder of the code, or in a usual one below, that a module class of the code fits."""
    attributes = _module_attributes(source.tree)
    places = [source.path.parent / name for name in _FOLDERS]
    indexes = [file for place in places for file in _files_in(place, (INDEX_SUFFIX,))]
    parts = {part for index in indexes for part in _parts_of(index)}
    files = [*indexes, *(file for place in places for file in _files_in(place, _SUFFIXES, without=parts))]
    fitting = [file for file in files if _is_fit(_tensors_of(file), attributes)]
    return tuple(sorted(fitting, key=lambda file: _rank(file, source.path)))


def code_beside(weights: Path, tensors: Collection[StoredTensor]) -> tuple[Path, ...]:
    """Python files in the folder of the weights, or above a usual one, with a module class that fits them."""
    places = [weights.parent] + ([weights.parent.parent] if weights.parent.name in _FOLDERS else [])
    files = [file for place in places for file in _files_in(place, (".py",))]
    fitting = [file for file in files if _is_fit(tensors, _attributes_of(file))]
    return tuple(sorted(fitting, key=lambda file: _rank(file, weights)))


def _files_in(folder: Path, suffixes: tuple[str, ...], *, without: Collection[Path] = ()) -> list[Path]:
    try:
        named = [file for file in sorted(folder.iterdir()) if file.name.lower().endswith(suffixes)]
        return [file for file in named if file not in without and file.is_file()][:_MOST_FILES]
    except OSError:
        return []


def _parts_of(index: Path) -> tuple[Path, ...]:
    """The files that an index names; none if it is damaged or some are missing."""
    try:
        return shard_files(index)
    except AceError:
        return ()


def _rank(file: Path, beside: Path) -> tuple[bool, bool, float]:
    """The same name first, then names of the best state of a training, then the newest."""
    is_named_so = file.stem.startswith(beside.stem) or beside.stem.startswith(file.stem)
    changed = 0.0
    with suppress(OSError):  # it may have been deleted since it was read
        changed = file.stat().st_mtime
    return not is_named_so, "best" not in file.stem, -changed


def _tensors_of(file: Path) -> tuple[StoredTensor, ...]:
    """The tensors of a file of weights by its header; none if it is something else, or damaged."""
    try:
        return list_tensors_of_file(file) if identify(file) in WEIGHTS_ALONE else ()
    except (AceError, OSError):
        return ()


def _is_fit(tensors: Iterable[StoredTensor], classes: Iterable[frozenset[str]]) -> bool:
    names = [unwrapped(one.name) for one in tensors]
    return bool(names) and any(_owns(attributes, names) for attributes in classes if attributes)


def _owns(attributes: frozenset[str], names: list[str]) -> bool:
    """Whether all names begin with an attribute of the class, at the top or below the keys of a checkpoint."""
    for _ in range(_DEEPEST_PREFIX + 1):
        heads = {name.partition(".")[0] for name in names}
        # Most of the attributes must be there: a common name alone, such as ``fc``, proves little.
        if heads <= attributes and 2 * len(heads) >= len(attributes):
            return True
        if len(heads) != 1:
            return False
        names = [name.partition(".")[2] for name in names]
    return False


def _attributes_of(file: Path) -> list[frozenset[str]]:
    try:
        return _module_attributes(parse_source(file, read_source(file)).tree)
    except (AceError, OSError):
        return []


def _module_attributes(tree: ast.Module) -> list[frozenset[str]]:
    """For each class: the attributes that may hold parameters, its bases' in the same file included."""
    nodes = islice((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)), _MOST_CLASSES)
    classes = {node.name: node for node in nodes}
    own = {name: {text for one in ast.walk(node) for text in _assigned(one)} for name, node in classes.items()}
    return [frozenset[str]().union(*(own[one.name] for one in with_bases(node, classes))) for node in classes.values()]


def _assigned(node: ast.AST) -> list[str]:
    """Attributes of self that a statement sets to a call: layers and parameters are made by one."""
    if isinstance(node, ast.Call) and dotted(node.func) in ("self.register_buffer", "self.register_parameter"):
        return [node.args[0].value] if node.args and _is_text(node.args[0]) else []  # type: ignore[attr-defined]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = getattr(node, "value", None)
    if not isinstance(value, ast.Call) or _PLAIN.search(dotted(value.func)):
        return []
    return [one.attr for one in targets if isinstance(one, ast.Attribute) and dotted(one.value) == "self"]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
