"""The Python program and the shell line that run the current choices: shown live, to be copied and run."""

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

import msgspec

from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.plan import PlanRule
from ace_studio.records.recipes.recipe import FinetuneMethod, PruneMethod, Recipe
from ace_studio.records.tensors import DATA_SUFFIXES, TensorSpec, Values, ValueSource, read_values
from ace_studio.session.document import Document

_FLOATS = ("float", "bfloat")


def python_code(document: Document) -> str:
    """A Python program that calls ``ace_studio.compile`` with the choices that differ from the defaults."""
    recipe = document.recipe
    if not recipe.model.source:
        return "# Open a model to see the Python that compresses it.\n"
    program = _Program(Path(document.folder))
    arguments = [program.load_model(document), *_keywords(recipe, program)]
    call = "".join(f"    {argument},\n" for argument in arguments)
    lines = [*program.head(), "", *program.body, f"result = ace_studio.compile(\n{call})", "print(result.report)"]
    left = unsaid_choices(recipe)
    if left:
        command = command_line(document).splitlines()[-1]
        lines.append(f"# compile() has no keyword for {', '.join(left)}: with them, run the saved recipe:\n# {command}")
    return "\n".join(lines) + "\n"


def unsaid_choices(recipe: Recipe) -> list[str]:
    """Choices that differ from the defaults and that ``compile`` has no keyword for, as ``table.key``."""
    found = [
        f"{table}.{key}"
        for table, usual in msgspec.structs.asdict(Recipe()).items()
        if table not in _SAID and hasattr(usual, "__struct_fields__")
        for key in _differing(getattr(recipe, table), usual)
        if f"{table}.{key}" not in _SAID and f"{table}.{key}" not in _KEYWORDS
    ]
    data = {"calibration.inputs": recipe.calibration.inputs, "inputs.tracing": recipe.inputs.tracing}
    found += [f"{key} from a file" for key, text in data.items() if _is_data_file(text)]
    specs = [item for row in recipe.inputs.rows for item in row.items()]
    if any(
        name.startswith("args.") or read_values(spec.values).source is ValueSource.CALIBRATION for name, spec in specs
    ):
        found.append("inputs.rows of *args or calibration data")
    return found


_SAID = frozenset(
    {
        "model", "inputs.tracing", "inputs.rows", "inputs.tuples", "calibration.inputs", "evaluate.function",
        "evaluate.data", "plan.default", "plan.rules", "plan.from_goal", "capture.controls", "prune", "finetune",
        "sensitivity", "advice_from", "limits.memory_mb", "limits.step_s", "capture.cache",
    }
)  # fmt: skip
"""Tables and keys that have lines of their own below, or that do not change what is computed."""
_KEYWORDS = {
    **{f"evaluate.{key}": key for key in ("metric", "output", "higher_is_better")},
    "inputs.dims": "dims",
    "inputs.shapes_from": "shapes_from",
    **{f"goal.{key}": key for key in Recipe().goal.__struct_fields__},
    "targets.names": "target",
    "targets.sizes": "sizes",
    **{f"capture.{key}": key for key in ("rungs", "time_limit_s", "compare_rungs", "batch_only")},
    **{f"calibration.{key}": key for key in ("samples", "subset", "observer", "percentile")},
    **{f"plan.{key}": key for key in ("weights", "activations", "group_size", "rest")},
    **{f"measure.{key}": key for key in Recipe().measure.__struct_fields__},
    "improve.methods": "improve",
    "improve.by_search": "improve_by_search",
    "improve.max_seconds": "improve_max_seconds",
}
"""Key of the recipe -> the keyword of ``compile`` that takes the same value."""


class _Program:
    """The program under construction: imports, and the lines before the call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._imports = {"import ace_studio"}
        self._folders: dict[str, None] = {}
        self.body: list[str] = []

    def head(self) -> list[str]:
        """The imports: of the standard library and packages first, then of the user's files."""
        packages = {line for line in self._imports if line.split()[1] in _PACKAGES}
        own = sorted(self._imports - packages)
        if not self._folders:
            return [*_sorted_imports(packages), *own]
        paths = [f"sys.path.insert(0, {folder!r})" for folder in self._folders]
        return ["import sys", "", *_sorted_imports(packages), "", *paths, *own]

    def needs(self, line: str) -> None:
        self._imports.add(line)

    def path(self, name: str) -> str:
        """A path of the recipe, absolute, as a literal."""
        return repr(str(self._folder / name))

    def callable_name(self, text: str, source: str) -> str:
        """Import a callable, named as in a recipe, and return the name to use."""
        file, _, name = text.rpartition(":")
        path = self._folder / (file or source)
        self._folders[str(path.parent)] = None
        self.needs(f"from {path.stem} import {name}")
        return name

    def load_model(self, document: Document) -> str:
        """Add the lines that make the model; returns its name."""
        recipe = document.recipe
        source, entry = recipe.model.source, recipe.model.entry
        kind = document.file.kind if document.file else ""
        suffix = PurePath(source).suffix
        if suffix == ".py" or ":" in entry:
            name = self.callable_name(entry or "make_model", source)
            gives_examples = not recipe.inputs.tracing and not recipe.inputs.rows
            entries = document.file.entries if document.file else ()
            if not any(one.name == name and one.kind == "variable" for one in entries):
                self.body.append(f"{'model, examples' if gives_examples else 'model'} = {name}()")
            elif name != "model":
                self.body.append(f"model = {name}")
        elif kind == "onnx":
            self.body.append("model = ...  # compile() takes PyTorch models: the one that the file was exported from")
        elif kind.startswith("huggingface"):
            self.needs("import transformers")
            maker = f"transformers.{entry or 'AutoModel'}.from_pretrained"
            self.body.append(f"model = {maker}({self.path(source)}, local_files_only=True)")
        elif (named := named_source(source)) is not None:
            line, expression = _BY_NAME[named.collection]
            more = f", num_classes={named.classes}" if named.classes else ""
            self.needs(line)
            self.body.append(f"model = {expression.format(name=named.model, more=more)}")
        else:
            loader = _LOADERS.get(kind) or _LOADERS.get(suffix) or _LOADERS[".pt"]
            self.needs("import torch")
            self.body.append(f"model = {loader(self.path(source))}")
        weights = recipe.model.weights or (source if suffix != ".py" and ":" in entry else "")
        if weights:
            loaded, key = self._file(weights)
            table = "".join(f"[{part!r}]" for part in key.split(".") if part)
            self.body.append(f"model.load_state_dict({loaded}{table})")
        return "model"

    def _file(self, text: str) -> tuple[str, str]:
        """The expression that loads what ``FILE`` or ``FILE:KEY`` names, and the key."""
        is_whole = ":" not in PurePath(text).name or (self._folder / text).exists()
        file, key = (text, "") if is_whole else text.rsplit(":", 1)
        if file.endswith(".safetensors"):
            self.needs("from safetensors.torch import load_file")
            return f"load_file({self.path(file)})", key
        if file.endswith((".npy", ".npz")):
            self.needs("import numpy")
            return f"numpy.load({self.path(file)})", key
        self.needs("import torch")
        return f"torch.load({self.path(file)}, weights_only=True)", key

    def tensor(self, name: str, spec: TensorSpec) -> str:
        """The expression that makes one example tensor."""
        values = read_values(spec.values)
        if values.is_plain:
            return repr(values.plain)
        self.needs("import torch")
        shape, dtype = list(spec.shape), f"dtype=torch.{spec.dtype}"
        match values.source:
            case ValueSource.ZEROS:
                return f"torch.zeros({shape}, {dtype})"
            case ValueSource.ONES:
                return f"torch.ones({shape}, {dtype})"
            case ValueSource.CONSTANT:
                return f"torch.full({shape}, {values.numbers[0]:g}, {dtype})"
            case ValueSource.RANGE:
                return f"torch.arange({math.prod(shape)}, {dtype}).reshape({shape})"
            case ValueSource.RANDOM | ValueSource.NORMAL:
                return _random_tensor(spec, values)
            case ValueSource.CALIBRATION:
                return "..."
            case _:
                return self._stored_tensor(name, spec.values)

    def _stored_tensor(self, name: str, text: str) -> str:
        loaded, key = self._file(text)
        one = loaded if text.endswith(".npy") else f"{loaded}[{key or name!r}]"
        return f"torch.from_numpy({one})" if loaded.startswith("numpy") else one


def _nested(items: Mapping[str, str], tuples: Collection[str], place: str = "") -> str:
    """The expression of inputs by name: dotted names are items of containers, of lists where they are numbers."""
    inner: dict[str, dict[str, str]] = {}
    for name, text in items.items():
        first, _, rest = name.partition(".")
        inner.setdefault(first, {})[rest] = text
    shown = {
        name: below[""] if "" in below else _nested(below, tuples, f"{place}.{name}" if place else name)
        for name, below in inner.items()
    }
    if place and shown.keys() == {str(number) for number in range(len(shown))}:
        listed = ", ".join(shown[str(number)] for number in range(len(shown)))
        return f"({listed},)" if place in tuples else f"[{listed}]"
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in shown.items()) + "}"


def _random_tensor(spec: TensorSpec, values: Values) -> str:
    shape, kind = list(spec.shape), f"torch.{spec.dtype}"
    first, last = values.numbers or (0, 99)
    if values.source is ValueSource.NORMAL:
        return f"(torch.randn({shape}) * {last:g} + {first:g}).to({kind})"
    if spec.dtype == "bool" and not values.numbers:
        return f"torch.rand({shape}) < 0.5"
    if not spec.dtype.startswith(_FLOATS):
        return f"torch.randint({int(first)}, {int(last) + 1}, {shape}, dtype={kind})"
    if values.numbers:
        return f"(torch.rand({shape}) * {last - first:g} + {first:g}).to({kind})"
    return f"torch.randn({shape}, dtype={kind})" if spec.dtype != "float32" else f"torch.randn({shape})"


_PACKAGES = {"ace_studio", "torch", "numpy", "safetensors.torch"}
_LOADERS: dict[str, Callable[[str], str]] = {
    "pt2": lambda path: f"torch.export.load({path}).module()",
    ".pt2": lambda path: f"torch.export.load({path}).module()",
    "torchscript": lambda path: f"torch.jit.load({path})",
    ".pt": lambda path: f"torch.load({path}, weights_only=False)  # runs the file's code",
}
"""Kind of file, or suffix -> the expression that loads the model."""


_BY_NAME = {
    "timm": ("import timm", "timm.create_model({name!r}, pretrained=False{more})"),
    "torchvision": ("import torchvision", "torchvision.models.get_model({name!r}, weights=None{more})"),
}
"""Package -> the import, and the expression that makes a model by name."""


def _sorted_imports(lines: Iterable[str]) -> list[str]:
    return sorted(lines, key=lambda line: (line.startswith("from"), line))


def _keywords(recipe: Recipe, program: _Program) -> list[str]:
    """The keyword arguments that differ from the defaults of ``ace_studio.compile``."""
    data, plan = _data_keywords(recipe, program), _plan_keywords(recipe)
    return [*data, *plan, *_plain_keywords(recipe), *_training_keywords(recipe, program)]


def _training_keywords(recipe: Recipe, program: _Program) -> list[str]:
    """Sensitivity, and pruning and fine-tuning where a method is chosen."""
    usual = Recipe()
    scan = _differing(recipe.sensitivity, usual.sensitivity)
    found = [f"sensitivity={scan!r}"] if scan else []
    if recipe.prune.method is not PruneMethod.NONE:
        found.append(f"prune={_differing(recipe.prune, usual.prune)!r}")
    if recipe.finetune.method is not FinetuneMethod.NONE:
        found.append(f"finetune={_differing(recipe.finetune, usual.finetune, without=('data', 'loss'))!r}")
        for key in ("data", "loss"):
            name = getattr(recipe.finetune, key)
            if name:
                found.append(f"finetune_{key}={program.callable_name(name, recipe.model.source)}")
    return found


def _differing(chosen: msgspec.Struct, usual: msgspec.Struct, *, without: tuple[str, ...] = ()) -> dict[str, object]:
    """The keys of a table that differ from the defaults, as plain values."""
    keys = (key for key in chosen.__struct_fields__ if key not in without)
    return {
        key: msgspec.to_builtins(getattr(chosen, key)) for key in keys if getattr(chosen, key) != getattr(usual, key)
    }


def _data_keywords(recipe: Recipe, program: _Program) -> list[str]:
    source = recipe.model.source
    inputs = recipe.inputs
    found = []
    if inputs.tracing and not _is_data_file(inputs.tracing):
        found.append(f"tracing_inputs={program.callable_name(inputs.tracing, source)}")
    elif inputs.rows:
        rows = (
            _nested({name: program.tensor(name, spec) for name, spec in row.items()}, inputs.tuples)
            for row in inputs.rows
        )
        found.append("tracing_inputs=[" + "".join(f"\n        {row}," for row in rows) + "\n    ]")
    elif "model, examples" in "".join(program.body):
        found.append("tracing_inputs=[examples]")
    if recipe.calibration.inputs and not _is_data_file(recipe.calibration.inputs):
        found.append(f"calibration_inputs={program.callable_name(recipe.calibration.inputs, source)}")
    if recipe.evaluate.function:
        found.append(f"evaluate={program.callable_name(recipe.evaluate.function, source)}")
    if recipe.evaluate.metric:
        found.append(f"evaluation_data={_evaluation_data(recipe.evaluate.data, program, source)}")
    return found


def _is_data_file(text: str) -> bool:
    """Whether a text names data on disk and not a function: a file of tensors, or a folder of images."""
    return text.endswith((*DATA_SUFFIXES, "/"))


def _evaluation_data(data: str, program: _Program, source: str) -> str:
    return repr(data) if data.endswith(DATA_SUFFIXES) else program.callable_name(data, source)


def _plan_keywords(recipe: Recipe) -> list[str]:
    has_plan = not recipe.plan.from_goal
    found = [f"default={str(recipe.plan.default)!r}"] if has_plan else []
    pairs: dict[str, list[Any]] = {
        "rules": [_rule(rule) for rule in recipe.plan.rules if has_plan],
        "controls": [(control.function, str(control.treat_as)) for control in recipe.capture.controls],
    }
    return found + [
        f"{keyword}=[" + "".join(f"\n        {one!r}," for one in ones) + "\n    ]"
        for keyword, ones in pairs.items()
        if ones
    ]


def _rule(rule: PlanRule) -> tuple[str, str] | dict[str, object]:
    given = {key: value for key, value in msgspec.to_builtins(rule).items() if value is not None}
    return given if len(given) > 2 else (rule.match, str(rule.precision))


def _plain_keywords(recipe: Recipe) -> list[str]:
    """Keywords that take the value of the recipe's key, if it is not the default."""
    found = []
    usual = Recipe()
    for path, keyword in _KEYWORDS.items():
        table, key = path.split(".")
        value = getattr(getattr(recipe, table), key)
        if value != getattr(getattr(usual, table), key):
            plain = msgspec.to_builtins(value)
            listed = list(plain) if isinstance(plain, tuple) else plain
            if keyword == "target" and len(listed) == 1:
                listed = listed[0]
            found.append(f"{keyword}={listed!r}")
    return found


DEFAULT_OUTPUT = "ace-output"


def command_line(document: Document, *, output: str = DEFAULT_OUTPUT) -> str:
    """The shell lines that run the current choices; a comment says so if they have to be saved first."""
    name = document.recipe_path or str(Path(document.folder) / document.proposed_name)
    words = ["ace-studio", "run", name, "--out", output]
    if document.file is None or document.file.trust == "code":
        words.append("--trust")
    line = shlex.join(words)
    is_saved = bool(document.recipe_path) and not document.is_dirty
    return line if is_saved else f"# Save the recipe first: the file does not have the current choices.\n{line}"
