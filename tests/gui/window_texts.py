"""The English texts of the window, read from the source.

``python -m tests.gui.window_texts Deutsch`` prints those that a pack lacks. A translator copies the printed lines into
``resources/languages/LANGUAGE.json`` and fills in the right sides.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "ace_studio"
LANGUAGES = PACKAGE.parent / "resources" / "languages"
ROW_FIELDS = {"title", "tip", "text", "unset", "about", "label", "help", "group", "submenu"}
"""Fields of table rows that are translated when the row is made or shown."""
TABLES = ("gui/shell/actions.py", "gui/panels/plan/field_rows.py", "gui/panels/plan/panel.py")
"""Here every sentence is shown: why an action or a field is grey; so are the titles of menus and of sections."""
SENTENCE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
TITLE = re.compile(r"&?[A-Z][a-z]+(-[a-z]+)?")


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
    return {text for text in found if re.search("[A-Za-z]{2}", text)}


def _looked_up(tree: ast.AST) -> Iterator[str]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "tr":
            yield from _constants(call.args[0])
        elif name == "plural":
            for noun in _constants(call.args[1]):
                yield from (noun, f"{noun}s")
        elif name[:1].isupper() or name == "_row":
            rows = [word.value for word in call.keywords if word.arg in ROW_FIELDS]
            for value in [*rows, *(call.args if name == "_row" else ())]:
                if isinstance(value, ast.Constant) and not str(value.value).endswith("Panel"):
                    yield str(value.value)


def _constants(tree: ast.AST) -> Iterator[str]:
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def pack(language: str) -> dict[str, str]:
    """English text -> translation."""
    texts: dict[str, str] = json.loads((LANGUAGES / f"{language}.json").read_text(encoding="utf-8"))["texts"]
    return texts


if __name__ == "__main__":
    missing = sorted(texts_of_window() - set(pack(sys.argv[1])))
    print(json.dumps(dict.fromkeys(missing, ""), indent=0, ensure_ascii=False))
