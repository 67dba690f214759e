"""Lists what a ``.py`` file offers by name, callables and models, from its syntax tree, without importing it."""

import ast
import copy
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ace_studio.engine.load.roles import dotted, with_roles
from ace_studio.engine.load.sniff import bad_file, size_of
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import EntryPoint
from ace_studio.records.safe_file import open_plain

_LARGEST_SOURCE_BYTES = 2_000_000
_MODULE_BASES = frozenset({"nn.Module", "torch.nn.Module", "Module", "LightningModule", "PreTrainedModel"})
_MODEL_NAMES = ("model", "net", "network")
_NO_MODEL_NAMES = ("loss", "criterion")
_LONGEST_SIGNATURE = 200
_MOST_BASES = 50
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class PythonSource:
    """A ``.py`` file as text and as a syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def imports(self) -> tuple[str, ...]:
        """Top-level names of the packages that the file imports anywhere, sorted; ``.`` for neighbours."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0] if not node.level else ".")
        return tuple(sorted(names))

    @property
    def has_relative_imports(self) -> bool:
        """Whether the file expects to be part of a package."""
        return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(self.tree))


def read_source(path: Path) -> bytes:
    """The bytes of a file for `parse_source`, which refuses more than are read of a larger one. Raises: OSError."""
    with open_plain(path) as stream:
        return stream.read(_LARGEST_SOURCE_BYTES + 1)


def parse_source(path: Path, content: bytes) -> PythonSource:
    """Parse Python source.

    Raises: AceError(BAD_FILE) with the line if it is no text or has a syntax error.
    """
    if len(content) > _LARGEST_SOURCE_BYTES:
        raise bad_file(
            path, f"has {size_of(path)} bytes, too many for Python source", remedy="give the file with the model"
        )
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the user's text is not ours to report
            tree = ast.parse(content, filename=str(path))
    except SyntaxError as error:
        raise syntax_problem(path, error) from error
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        raise bad_file(
            path,
            "cannot be read as Python",
            why="it nests too deeply" if isinstance(error, RecursionError | MemoryError) else str(error),
            remedy="check that this is the file you mean, and that it is saved as UTF-8",
        ) from error
    return PythonSource(path, text, tree)


def syntax_problem(path: Path, error: SyntaxError) -> AceError:
    """The error for source that Python cannot parse, with its line."""
    line = f"line {error.lineno} reads `{(error.text or '').strip()}`" if error.text else ""
    return AceError.of(
        ErrorCode.BAD_FILE,
        f"{path.name} has a syntax error: {error.msg}",
        why=line,
        remedy=f"correct the line; `python -m py_compile {path.name}` says the same",
        where=f"{path}:{error.lineno or 1}",
    )


def list_entries(source: PythonSource) -> tuple[EntryPoint, ...]:
    """List the public functions, classes and models at the top level; the last definition of a name counts."""
    classes = {node.name: node for node in _definitions(source.tree.body) if isinstance(node, ast.ClassDef)}
    inits = {name: init for name, node in classes.items() if (init := _own_init(node))}
    found: dict[str, EntryPoint] = {}
    for node in _definitions(source.tree.body):
        entry = _class_entry(node, classes, inits) if isinstance(node, ast.ClassDef) else _other_entry(node, classes)
        if entry is not None and not entry.name.startswith("_"):
            found.pop(entry.name, None)
            found[entry.name] = entry
    return with_roles(found.values(), source.tree)


def _other_entry(node: _Function | ast.Assign, classes: dict[str, ast.ClassDef]) -> EntryPoint | None:
    """A function, or a variable that holds a model; None for a variable that holds something else."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Lambda):
        return _function_entry(node)
    assert isinstance(node.targets[0], ast.Name)
    name = node.targets[0].id
    if not _holds_a_model(name.lower(), node.value, classes):
        return None
    return EntryPoint(name=name, line=node.lineno, kind="variable", signature="")


def _holds_a_model(name: str, value: ast.expr, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether a variable is called a model, or is made by calling a module class of the file: ``Net(8).eval()``."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    made_by = classes.get(dotted(value.func)) if isinstance(value, ast.Call) else None
    is_made = made_by is not None and _is_module(made_by, classes)
    return name.endswith(_MODEL_NAMES) or (is_made and not name.endswith(_NO_MODEL_NAMES))


def _definitions(body: Iterable[ast.stmt]) -> Iterator[ast.ClassDef | _Function | ast.Assign]:
    """Definitions at the top level, also inside ``if``, ``try`` and ``with`` there."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.Assign):
            if isinstance(node.value, ast.Lambda | ast.Call) and isinstance(node.targets[0], ast.Name):
                yield node
        elif isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        else:
            yield from _definitions(_blocks(node))


def _blocks(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.If | ast.With | ast.Try):
        yield from node.body
        yield from getattr(node, "orelse", [])
        for handler in getattr(node, "handlers", []):
            yield from handler.body


def _function_entry(node: _Function | ast.Assign) -> EntryPoint:
    if isinstance(node, ast.Assign):
        function = node.value
        assert isinstance(function, ast.Lambda) and isinstance(node.targets[0], ast.Name)
        name, arguments, returns, summary = node.targets[0].id, function.args, None, ""
    else:
        name, arguments, returns, summary = node.name, node.args, node.returns, _summary(node)
    return EntryPoint(
        name=name,
        line=node.lineno,
        kind="function",
        signature=_signature(arguments, returns),
        summary=summary,
        required_arguments=_required(arguments),
    )


def _class_entry(
    node: ast.ClassDef, classes: dict[str, ast.ClassDef], inits: Mapping[str, ast.FunctionDef]
) -> EntryPoint:
    init = next((inits[one.name] for one in with_bases(node, classes) if one.name in inits), None)
    arguments = ast.arguments([], [], None, [], [], None, []) if init is None else _without_self(init.args)
    return EntryPoint(
        name=node.name,
        line=node.lineno,
        kind="class",
        signature=_signature(arguments, None),
        summary=_summary(node),
        required_arguments=_required(arguments),
        is_module=_is_module(node, classes),
    )


def with_bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """The class, and its bases in this file, each once, in the order in which Python looks; at most `_MOST_BASES`."""
    seen, waiting = {node.name}, [node]
    while waiting and len(seen) <= _MOST_BASES:
        yield (one := waiting.pop())
        new = [name for name in map(dotted, one.bases[:_MOST_BASES]) if name in classes and name not in seen]
        seen.update(new)
        waiting += [classes[name] for name in reversed(new)]


def _own_init(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)


def _is_module(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    names = (dotted(base) for one in with_bases(node, classes) for base in one.bases[:_MOST_BASES])
    return any(
        name in _MODULE_BASES or name.startswith(("nn.", "torch.nn.")) or name.endswith(".LightningModule")
        for name in names
    )


def _without_self(arguments: ast.arguments) -> ast.arguments:
    """The same arguments without the first positional one."""
    bare = copy.copy(arguments)
    if arguments.posonlyargs:
        bare.posonlyargs = arguments.posonlyargs[1:]
    else:
        bare.args = arguments.args[1:]
    count = len(bare.posonlyargs) + len(bare.args)
    bare.defaults = arguments.defaults[-count:] if count else []
    return bare


def _required(arguments: ast.arguments) -> int:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional + sum(1 for default in arguments.kw_defaults if default is None)


def _signature(arguments: ast.arguments, returns: ast.expr | None) -> str:
    text = f"({ast.unparse(arguments)})" + (f" -> {ast.unparse(returns)}" if returns is not None else "")
    return text if len(text) <= _LONGEST_SIGNATURE else text[: _LONGEST_SIGNATURE - 3] + "..."


def _summary(node: ast.ClassDef | _Function) -> str:
    text = (ast.get_docstring(node) or "").strip()
    return text.split("\n", 1)[0].strip()
