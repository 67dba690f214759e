"""The pages for contributors keep their form and size, and the examples in CONTRIBUTING run."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from ace_studio.engine.metrics import kinds
from ace_studio.gui.panels import ops
from ace_studio.records.results import OpReport

MOST_WORDS = 1_500
"""Of CONTRIBUTING.md."""
MOST_CHANGES = 60
"""Lines of one version in CHANGELOG.md."""
MOST_DECISIONS = 40
LINES_OF_A_DECISION = range(5, 13)
LABELS = ["Context:", "Choice:", "Price:", "Open again if"]


def example_of(root: Path, section: str) -> str:
    """The block of Python below a heading of CONTRIBUTING.md."""
    text = (
        (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"### {section}\n")[2].partition("\n### ")[0]
    )
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return block


def value_of(block: str, names: dict[str, Any]) -> Any:
    """Run a block with these names, and return the value of the expression that ends it."""
    *statements, last = ast.parse(block).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), "CONTRIBUTING.md", "exec"), names)
    return eval(compile(ast.Expression(last.value), "CONTRIBUTING.md", "eval"), names)  # noqa: S307 - our own page


def test_the_metric_of_the_guide_computes_what_it_says(root):
    metric = value_of(example_of(root, "a metric"), dict(vars(kinds)))
    outputs, labels = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 0.0], [6.0, 5.0]])
    assert metric.name not in kinds.METRICS
    assert metric.measure(outputs, labels).value == pytest.approx(1.5)


def test_the_column_of_the_guide_shows_what_the_report_holds(root):
    report = OpReport(id="conv", op="", module="", shape="", device="", planned="", actual="", share=0.25)
    column = value_of(
        example_of(root, "a column of the op table"), vars(ops) | {"of_report": lambda read: [read(report)]}
    )
    assert list(map(column.text, column.values)) == ["25.00 %"]


def test_the_guide_for_contributors_is_short(root):
    assert len((root / "CONTRIBUTING.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_a_version_of_the_changelog_is_short(root):
    _, *versions = re.split(r"^## ", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {one.splitlines()[0]: len(one.splitlines()) for one in versions if one.count("\n") > MOST_CHANGES} == {}


def test_decisions_are_few_and_each_says_what_it_costs_and_what_would_open_it_again(root):
    _, *entries = re.split(r"^### ", (root / "ace_studio/DECISIONS.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(entries) <= MOST_DECISIONS, "merge decisions of one subject, or remove one that the code has overtaken"
    for entry in entries:
        title, *lines = [line for line in entry.partition("\n## ")[0].splitlines() if line]
        assert re.findall(r"^- \*\*(.+?)\*\*", "\n".join(lines), flags=re.MULTILINE) == LABELS, title
        assert len(lines) in LINES_OF_A_DECISION, title


def test_every_note_of_the_benchmarks_is_in_their_list(root):
    folder = root / "tests/benchmarks/notes"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_every_test_that_the_page_on_security_names_exists_and_no_way_in_is_without_one(root):
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    for file, function in re.findall(r"\b(tests/[\w/]+\.py)(?:::(\w+))?", text):
        assert not function or f"\ndef {function}(" in (root / file).read_text(encoding="utf-8"), f"{file}::{function}"
        assert (root / file).is_file(), file
    section = text.partition("\n## How a stranger's bytes come in\n")[2].partition("\n## ")[0]
    _, _, *rows = re.findall(r"^\| (.*) \|$", section, flags=re.MULTILINE)
    named = re.compile(r"`tests/[\w/]+\.py(::\w+)?`(, `tests/[\w/]+\.py(::\w+)?`)*")
    assert len(rows) > 30
    assert [row for row in rows if not named.fullmatch(row.split(" | ")[3])] == []
