"""The tools: which commands an agent may give, their arguments, and the words of the command line that they become."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

from ace_studio.cli.app import whole_command
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.roots import Roots, resolved

_KEPT_BACK = frozenset({"trust", "contain", "python", "host", "hosts", "send", "as_json"})
"""Options that no tool has: trust, containment, programs to run and what may be sent are the user's, and the answer is
always JSON."""
_SUFFIXES = {"save": (".toml",), "save_patch": (".patch", ".diff")}
"""Arguments that name a file to write: how its name ends, so that no tool writes over code or settings."""
_TYPES = {bool: "boolean", int: "integer", float: "number"}
REPLACE = "replace"
"""The argument of every tool that writes; no option of a command, because a person may write anywhere."""


class Use(StrEnum):
    """Whether an argument is a path, and what the tool does there."""

    NONE = "none"
    """No path."""
    REQUEST = "request"
    """It goes into a recipe or a request, and the paths in those are judged when they are sent (`AgentRunner`)."""
    READ = "read"
    """A path to read. Of the folder of a run also its result; a number in the history is no path."""
    WRITE = "write"
    """A path to write: new, or listed in `REPLACE`."""
    WRITE_INSIDE = "write-inside"
    """A folder to write into, or a new name; the command judges each file."""


USES: Mapping[str, Use] = {
    **dict.fromkeys(("path", "paths", "script", "model", "folder", "first", "second", "repeat"), Use.READ),
    **dict.fromkeys(("advise.recipe", "measure.run"), Use.READ),
    **dict.fromkeys(("out", "save", "save_patch", "catch.recipe"), Use.WRITE),
    "to": Use.WRITE_INSIDE,
    **dict.fromkeys(("entry", "input", "set", "at"), Use.REQUEST),
    **dict.fromkeys(("compare_rungs", "batch_only", "no_cache", "apply_controls", "write_source", "done"), Use.NONE),
    **dict.fromkeys(("arguments", "module", "calls", "name", "precision", "op", "example", "target"), Use.NONE),
    **dict.fromkeys(("method", "amount", "shapes_from", "workers", "device", "index", "apply"), Use.NONE),
    "export.run": Use.NONE,
}
"""The use of every argument, by its name or by ``tool.name``. One that is not here has no tool."""


@dataclass(frozen=True)
class ToolRow:
    """One tool: a command of the same name."""

    name: str
    more: str = ""
    """What an agent should know beyond the first line of ``--help``."""
    fixed: tuple[str, ...] = ()
    """Options that are always given."""
    without: tuple[str, ...] = ()
    """More options that the tool does not have, by their names in Python."""
    is_read_only: bool = False


ROWS = (
    ToolRow("inspect", "Open a file with this first; `entries` are the callables that may make the model.",
            is_read_only=True),
    ToolRow("doctor", is_read_only=True),
    ToolRow("trace", "`capture.graph_breaks` says where capture stops, and why; `fix` tries what helps there.",
            is_read_only=True),
    ToolRow("fix", "Explains a graph break (`at`) by what was tried there, and what came of it."),
    ToolRow("plan", "`set` changes values of the recipe, as plan.default=int8-static; `save` keeps it."),
    ToolRow("recipes", "The JSON has its text.", without=("out",), is_read_only=True),
    ToolRow("sensitivity", is_read_only=True),
    ToolRow("values", without=("save",), is_read_only=True),
    ToolRow("prune", fixed=("--preview",), without=("preview",), is_read_only=True),
    ToolRow("catch"),
    ToolRow("run", "May take minutes. The files of the result are linked."),
    ToolRow("sweep", "May take hours; a cancelled one goes on where it was. `rows` has a job each.",
            without=("scheduler", "mlflow")),
    ToolRow("measure", "`device` is one that the user has listed; `here` is this machine."),
    ToolRow("report", is_read_only=True),
    ToolRow("compare", is_read_only=True),
    ToolRow("advise", "With `apply` it runs one card into the folder `out`."),
    ToolRow("export"),
    ToolRow("history", without=("tag", "name"), is_read_only=True),
)  # fmt: skip
"""Every tool, in the order of `tools/list`."""


@dataclass(frozen=True)
class ToolArgument:
    """One argument of a tool: an argument or an option of the command."""

    name: str
    option: str
    """``--entry``; empty for what stands by itself."""
    kind: str
    """Type in JSON Schema, of each value where it takes many."""
    takes_many: bool
    is_required: bool
    help: str
    use: Use
    words: tuple[str, ...] = ()
    """The values that are allowed; empty: any."""
    default: object = None

    @property
    def schema(self) -> dict[str, Any]:
        """It in JSON Schema."""
        one: dict[str, Any] = {"type": self.kind} | ({"enum": list(self.words)} if self.words else {})
        return ({"type": "array", "items": one} if self.takes_many else one) | {"description": self.help}


@cache
def tool_arguments(row: ToolRow) -> tuple[ToolArgument, ...]:
    """The arguments of a tool, as the command line has them."""
    found: list[ToolArgument] = []
    for parameter in whole_command().commands[row.name].params:
        if parameter.name in _KEPT_BACK or parameter.name in row.without:
            continue
        option = max(parameter.opts, key=len) if parameter.opts[0].startswith("-") else ""
        name = option.removeprefix("--").replace("-", "_") or parameter.name
        if any(name == one.name for one in found):  # `measure RUN --run INDEX`
            name = parameter.name
        kind = parameter.type_descriptor.annotation
        takes_many = get_origin(kind) is list
        kind = get_args(kind)[0] if takes_many else kind
        found.append(
            ToolArgument(
                name=name,
                option=option,
                kind=_TYPES.get(kind, "string"),
                takes_many=takes_many,
                is_required=parameter.required,
                help=parameter.help or "",
                use=USES[f"{row.name}.{name}"] if f"{row.name}.{name}" in USES else USES[name],
                words=tuple(one.value for one in kind) if issubclass(kind, Enum) else (),
                default=parameter.default,
            )
        )
    if not row.is_read_only:
        found.append(_REPLACE)
    return tuple(found)


_REPLACE = ToolArgument(
    name=REPLACE,
    option="",
    kind="string",
    takes_many=True,
    is_required=False,
    help="Files and folders that are there and that this call may write over or change; all others stay as they are.",
    use=Use.WRITE_INSIDE,
)


def tool_schema(row: ToolRow) -> dict[str, Any]:
    """The arguments of a tool as a JSON Schema."""
    arguments = tool_arguments(row)
    return {
        "type": "object",
        "properties": {one.name: one.schema for one in arguments},
        "required": [one.name for one in arguments if one.is_required],
        "additionalProperties": False,
    }


def tool_description(row: ToolRow) -> str:
    """What a tool does: the help of its command, and what an agent should know."""
    return f"{whole_command().commands[row.name].help} {row.more}".strip()


def words_of(row: ToolRow, values: Mapping[str, Any]) -> list[str]:
    """The words of the command line. No value can be taken for an option.

    Raises: AceError(USAGE) for an argument that the tool does not have, or a value that does not fit.
    """
    arguments = {one.name: one for one in tool_arguments(row)}
    if unknown := sorted(set(values) - set(arguments)):
        raise AceError.of(
            ErrorCode.USAGE,
            f"The tool {row.name} has no argument '{unknown[0]}'",
            why="no tool gives trust" if unknown[0] == "trust" else "",
            remedy="It has: " + ", ".join(arguments),
        )
    options, places = [row.name, "--json", *row.fixed], []
    for name, argument in arguments.items():
        if (value := values.get(name)) is None or value is False:
            continue
        if isinstance(value, list) != argument.takes_many or isinstance(value, dict):
            expected = "a list" if argument.takes_many else f"one {argument.kind}"
            raise AceError.of(ErrorCode.USAGE, f"The argument {name} of {row.name} is {expected}")
        if (suffixes := _SUFFIXES.get(name)) and not str(value).endswith(suffixes):
            raise AceError.of(ErrorCode.USAGE, f"{value} does not end with {' or '.join(suffixes)}")
        given = [str(one) for one in (value if argument.takes_many else [value])]
        if name == REPLACE:
            continue
        if not argument.option:
            places += given
        elif argument.kind == "boolean":
            options.append(argument.option)
        else:
            options += [f"{argument.option}={one}" for one in given]
    return [*options, "--", *places]


def with_places(row: ToolRow, values: Mapping[str, Any], roots: Roots) -> tuple[dict[str, Any], Roots]:
    """The values with each path to write as the place that it leads to, and the roots of this call.

    Raises: AceError(UNTRUSTED) for a path that is not open to tools; AceError(USAGE) for what is no path.
    """
    given = values.get(REPLACE) or ()
    replaceable = tuple(resolved(Path(str(one))) for one in (given if isinstance(given, list) else [given]))
    roots = replace(roots, replaceable=replaceable)
    judged = dict(values)
    for argument in tool_arguments(row):
        value = judged.get(argument.name)
        if value is None and isinstance(argument.default, Path):
            value = str(argument.default)
        if value is None or argument.use in (Use.NONE, Use.REQUEST):
            continue
        places = [_place(str(one), argument.use, roots) for one in (value if isinstance(value, list) else [value])]
        judged[argument.name] = places if isinstance(value, list) else places[0]
    return judged, roots


def _place(text: str, use: Use, roots: Roots) -> str:
    path = Path(text)
    if use is not Use.READ:
        return str(roots.writable(path) if use is Use.WRITE else roots.inside(path))
    if path.exists() or not (text.isdecimal() or named_source(path) is not None):
        roots.readable(path)
        roots.readable(path / RESULT_NAME)
    return text
