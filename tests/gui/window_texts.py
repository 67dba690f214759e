"""The English texts of the window, read from the source.

``python -m tests.gui.window_texts Deutsch`` prints those that a pack lacks. A translator copies the printed lines into
``resources/languages/LANGUAGE.json`` and fills in the right sides.
"""

import ast
import itertools
import json
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path

from ace_studio.gui.words.steps import StepState
from ace_studio.jobs.pack_install import InstallStep
from ace_studio.records.messages import Phase
from ace_studio.records.ops import OpFamily
from ace_studio.records.recipes.recipe import Objective
from ace_studio.records.results import ResultStatus, RunStatus
from ace_studio.records.tensors import DimChoice
from ace_studio.session.comparison.findings import Change
from ace_studio.session.comparison.graphs import OpChange
from ace_studio.session.document import QueueState

PACKAGE = Path(__file__).resolve().parents[2] / "ace_studio"
LANGUAGES = PACKAGE.parent / "resources" / "languages"
ROW_FIELDS = {"title", "tip", "text", "unset", "about", "label", "help", "group", "submenu"}
"""Fields of table rows that are translated when the row is made or shown."""
TABLES = ("gui/shell/actions.py", "gui/panels/plan/field_rows.py", "gui/panels/plan/panel.py")
"""Here every sentence is shown: why an action or a field is grey; so are the titles of menus and of sections."""
SENTENCE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
TITLE = re.compile(r"&?[A-Z]&?[a-z]+(-[a-z]+)?")
WORDS: tuple[type[StrEnum], ...] = (
    OpFamily, Phase, RunStatus, ResultStatus, Objective, OpChange, Change, DimChoice, StepState, QueueState,
    InstallStep,
)  # fmt: skip
"""Words of records that are translated where they are shown."""
SHOWN = {
    "Chart", "Detail", "QCheckBox", "QLabel", "QPushButton", "addAction", "addMenu", "addTab", "button", "label",
    "setAccessibleName", "setHeaderLabels", "setHorizontalHeaderLabels", "setPlaceholderText", "setText", "setTitle",
    "setToolTip", "setWindowTitle", "show_plot", "show_words", "text_field", "tool_button", "_field",
}  # fmt: skip
"""Their first argument is shown; for ``Detail`` the second too."""
NAMES = re.compile("ACE Studio|SHA-256")
"""Shown as they are in every language."""
REPORTED = {"advance", "phase", "warn"}
"""Methods of a reporter: what the engine does just now and warns of, which the window translates with `told`."""
DESCRIBED = {"label", "would_run"}
"""Fields of the rows in ``engine/load`` that the Model panel translates with `told`."""
MADE = {"Problem", "AceError", "of", "explained"}
"""What makes a problem: its what, why and remedy are sentences, which `told` translates where they are shown."""


def texts_of_window() -> set[str]:
    """Every text that is looked up in a language pack."""
    tables = [PACKAGE / "session/kept/settings.py", PACKAGE / "records/recipes/families.py"]
    files = [*sorted((PACKAGE / "gui").rglob("*.py")), *tables]
    found: set[str] = set()
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.update(_looked_up(tree))
        if str(path.relative_to(PACKAGE)) in TABLES:
            found.update(text for text in _constants(tree) if SENTENCE.search(text) or TITLE.fullmatch(text))
    found.update(str(word).replace("-", " ") if kind is ResultStatus else str(word) for kind in WORDS for word in kind)
    stops = json.loads((LANGUAGES.parent / "tour.json").read_text(encoding="utf-8"))
    found.update(stop[name] for stop in stops for name in ("title", "text"))
    return {text for text in found if re.search("[A-Za-z]{2}", text)}


def bare_texts() -> list[str]:
    """File, line and text of each literal of the window that is shown without a look-up in a language pack."""
    found = []
    for path in sorted((PACKAGE / "gui").rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if _shows(node)):
            for value in _shown_by(call):
                words = " ".join(_words_of(value))
                if re.search("[A-Za-z]{3}", NAMES.sub("", words)):
                    found.append(f"{path.relative_to(PACKAGE)}:{value.lineno} {words}")
    return found


def _shown_by(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args[: 2 if _called(call) == "Detail" else 1]
    yield from (word.value for word in call.keywords if word.arg in ("accessibleName", "placeholderText", "toolTip"))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _shows(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in SHOWN


def _words_of(value: ast.expr) -> Iterator[str]:
    """Literal parts of a text: of a string, of one with values, of either side of a choice or a sum."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield from (part.value for part in parts if isinstance(part, ast.Constant))
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from (*_words_of(one), *_words_of(other))
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from (text for part in parts for text in _words_of(part))


@cache
def sentences_of_engine() -> set[str]:
    """What the engine does and warns of, and what opening a file would run.

    A short one that begins with a value stays English: ``{0} alone`` as a pattern would fit sentences of others too.
    """
    found: set[str] = set()
    for path in sorted((PACKAGE / "engine").rglob("*.py")):
        describes = path.parent.name in ("load", "huggingface")
        for call in (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        ):
            given = call.args[1:2] if _called(call) in REPORTED else []
            given += [word.value for word in call.keywords if describes and word.arg in DESCRIBED]
            found.update(text for value in given for part in _leaves(value) for text in _templates(part))
    return {text for text in found if re.match(r"[A-Za-z0-9].*[A-Za-z]{4}|.*[a-z]+( [a-z]+){3}", text)}


def sentences_of_problems() -> set[str]:
    """What, why and remedy of the problems that `session` and the window make; values are ``{0}``, ``{1}``, ..."""
    found: set[str] = set()
    for path in [file for folder in ("session", "gui") for file in sorted((PACKAGE / folder).rglob("*.py"))]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kept: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                kept.setdefault(node.targets[0].id, []).append(node.value)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in MADE):
            given = [word.value for word in call.keywords if word.arg in ("what", "why", "remedy")]
            for value in (*call.args[1:2], *given):
                meant = kept.get(value.id, []) if isinstance(value, ast.Name) else [value]
                found.update(text for one in meant for text in _sentences(one))
    return found


def _sentences(value: ast.expr) -> Iterator[str]:
    yield from (text for text in _templates(value) if SENTENCE.search(text))


def _templates(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            count = itertools.count()
            yield "".join(part.value if isinstance(part, ast.Constant) else f"{{{next(count)}}}" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from (*_templates(one), *_templates(other))


def _leaves(value: ast.expr) -> Iterator[ast.expr]:
    """The texts in a tuple, a sum, a choice or a comprehension."""
    match value:
        case ast.Tuple(elts=parts):
            yield from (leaf for part in parts for leaf in _leaves(part))
        case ast.Starred(value=inner) | ast.GeneratorExp(elt=inner) | ast.Call(args=[inner]):
            yield from _leaves(inner)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            yield from (*_leaves(one), *_leaves(other))
        case _:
            yield value


def _looked_up(tree: ast.AST) -> Iterator[str]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "tr":
            yield from _constants(call.args[0])
        elif name == "plural":
            for noun in _constants(call.args[1]):
                yield from (noun, f"{noun}s")
        elif name[:1].isupper():
            rows = [word.value for word in call.keywords if word.arg in ROW_FIELDS]
            for value in [*rows, *(call.args if name == "PanelRow" else ())]:
                if isinstance(value, ast.Constant) and not str(value.value).endswith("Panel"):
                    yield str(value.value)


def _constants(tree: ast.AST) -> Iterator[str]:
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def pack(language: str, part: str = "texts") -> dict[str, str]:
    """English -> translation, of the ``texts`` or of the ``sentences``."""
    texts: dict[str, str] = json.loads((LANGUAGES / f"{language}.json").read_text(encoding="utf-8"))[part]
    return texts


if __name__ == "__main__":
    for part, wanted in (("texts", texts_of_window()), ("sentences", sentences_of_problems() | sentences_of_engine())):
        missing = sorted(wanted - set(pack(sys.argv[1], part)))
        print(json.dumps({part: dict.fromkeys(missing, "")}, indent=0, ensure_ascii=False))
