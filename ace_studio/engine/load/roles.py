"""Proposes by the syntax tree what each callable of the user's file is for: its name, signature and value."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ace_studio.records.messages import EntryPoint, EntryRole

_MAKERS = frozenset({"make", "build", "create", "get", "load", "new", "construct", "define", "init", "setup"})
_MODELS = frozenset(
    {"model", "net", "network", "module", "classifier", "regressor", "detector", "encoder", "decoder", "backbone"}
)
_SCORES = frozenset(
    {"evaluate", "evaluation", "eval", "score", "scorer", "metric", "accuracy", "acc", "validate", "validation"}
    | {"auc", "f1", "spearman", "pearson", "correlation", "recall", "iou", "perplexity", "quality", "measure", "judge"}
)
_CALIBRATIONS = frozenset({"calibration", "calibrate", "calib", "representative"})
_EXAMPLES = frozenset({"tracing", "trace", "example", "dummy", "sample", "input", "inputs", "fake"})
_LOADERS = frozenset({"loader", "dataloader", "dataset", "data", "batch", "batches"})
_LOADS_WEIGHTS = frozenset(
    {"load_state_dict", "load_file", "load_checkpoint", "load_weights", "load_from_checkpoint", "from_pretrained"}
)
_MOST_PARTS = 6
_TRAINS = frozenset({"backward", "fit"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def with_roles(entries: Iterable[EntryPoint], tree: ast.Module) -> tuple[EntryPoint, ...]:
    """The entries with their roles."""
    listed = tuple(entries)
    nodes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | _Function)}
    modules = frozenset(one.name for one in listed if one.is_module)
    parts = {call for name in modules for call in _calls(nodes.get(name), modules) if call != name}
    return tuple(replace(one, role=_role(one, nodes.get(one.name), modules, parts)) for one in listed)


def loads_weights(tree: ast.Module) -> bool:
    """Whether any code of the file reads weights, so that its model is not left at random ones."""
    return any(_called(node) in _LOADS_WEIGHTS for node in ast.walk(tree) if isinstance(node, ast.Call))


def trains(tree: ast.Module) -> bool:
    """Whether any code of the file trains a model."""
    return any(_called(node) in _TRAINS for node in ast.walk(tree) if isinstance(node, ast.Call))


def words_of(name: str) -> frozenset[str]:
    """The words of a name in any spelling, in lower case: ``getCalibData``, ``get_calib_data``, ``CALIB_DATA``."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    lower = [part.lower() for part in parts]
    return frozenset(lower) | {word.removesuffix("s") for word in lower} | {"".join(lower)}


def _role(one: EntryPoint, node: ast.AST | None, modules: frozenset[str], parts: set[str]) -> EntryRole:
    if one.kind == "variable":
        return EntryRole.MODEL
    if one.kind == "class":
        if not one.is_module:
            return EntryRole.NONE
        return EntryRole.PART if one.name in parts else EntryRole.MODEL
    words = words_of(one.name)
    if one.required_arguments == 1 and words & _SCORES and _only_calls_its_argument(node):
        return EntryRole.EVALUATE
    if one.required_arguments:
        return EntryRole.NONE
    if words & _CALIBRATIONS:
        return EntryRole.CALIBRATION
    if _makes_a_module(one, node, words, modules):
        return EntryRole.MODEL
    for role, names in ((EntryRole.TRACING, _EXAMPLES), (EntryRole.DATA, _LOADERS)):
        if words & names and _gives_something(node):
            return role
    return EntryRole.NONE


def _makes_a_module(one: EntryPoint, node: ast.AST | None, words: frozenset[str], modules: frozenset[str]) -> bool:
    """Whether it returns a module by its annotation, its value or the docstring; else a verb and a noun must say so."""
    returns = one.signature.rpartition("->")[2].strip().strip("\"'") if "->" in one.signature else ""
    if returns:
        name = returns.rpartition(".")[2]
        return name in modules or name == "ExportedProgram" or "Module" in returns
    made = {name for value in _returned(node) for name in _calls(value, modules)}
    return bool(made or (words & _MODELS and (words & _MAKERS or len(words) <= 2)))


def _returned(node: ast.AST | None) -> Iterator[ast.expr]:
    """What a function returns; for a name, what was assigned to it."""
    if not isinstance(node, _Function):
        return
    assigned: Mapping[str, ast.expr] = {
        target.id: one.value
        for one in ast.walk(node)
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    for one in ast.walk(node):
        if isinstance(one, ast.Return) and one.value is not None:
            yield assigned.get(one.value.id, one.value) if isinstance(one.value, ast.Name) else one.value


def _gives_something(node: ast.AST | None) -> bool:
    """Whether a function returns or yields a value; a lambda always does."""
    if not isinstance(node, _Function):
        return True
    return any(
        isinstance(one, ast.Return | ast.Yield | ast.YieldFrom) and one.value is not None for one in ast.walk(node)
    )


def _only_calls_its_argument(node: ast.AST | None) -> bool:
    """Whether a function does nothing with its first argument but call it or pass it on: it is given a function."""
    if not isinstance(node, _Function) or not node.args.args:
        return True
    name = node.args.args[0].arg
    return not any(
        isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == name
        for one in ast.walk(node)
    )


def _calls(node: ast.AST | None, names: frozenset[str]) -> set[str]:
    return {_called(one) for one in ast.walk(node) if isinstance(one, ast.Call)} & names if node else set()


def dotted(node: ast.expr) -> str:
    """``a.b`` of a name with attributes, ``.b`` of another expression with one; of many the last few."""
    parts: list[str] = []
    node = node.value if isinstance(node, ast.Subscript) else node  # Base[T]
    while isinstance(node, ast.Attribute) and len(parts) < _MOST_PARTS:
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *parts])


def _called(call: ast.Call) -> str:
    """The last part of what is called: ``load_file``; ``torch.load`` is called so, because others have a load too."""
    text = dotted(call.func)
    return "load_state_dict" if text in ("torch.load", "safe_open") else text.rpartition(".")[2]
