"""Colours, type and spacing are named in ``gui/style`` and nowhere else in the window."""

import re

import pytest

LITERALS = {
    "a colour": r"#[0-9a-fA-F]{6}\b|QColor\([\"\d]",
    "a size of type": r"font-size: *\d|set(?:Pixel|Point)Size\(\d",
    "a weight of type": r"font-weight: *(?:\d|bold)",
    "a gap": r"\bgap(?:=|: int = )[1-9]|[sS]pacing\([1-9]",
    "a margin": r"\bmargin=\(?(?:[\w*]+, *)*[1-9]\d*\b(?!\.)|setContentsMargins\((?:[\w*]+, *)*[1-9]",
}


@pytest.mark.parametrize(
    ("what", "line"),
    [("a gap", "row(a, gap=6)"), ("a gap", "grid.setVerticalSpacing(4)"), ("a gap", "def f(gap: int = 6)"),
     ("a margin", "margin=10)"), ("a margin", "margin=(GAP, 6, GAP, 0)"),
     ("a margin", "setContentsMargins(0, 3, 0, 0)"),
     ("a colour", 'QColor("red")'), ("a size of type", "font.setPixelSize(12)")],
)  # fmt: skip
def test_a_number_is_found(what, line):
    assert re.search(LITERALS[what], line)


@pytest.mark.parametrize("what", LITERALS)
def test_no_module_of_the_window_writes_it_as_a_number(root, what):
    window = root / "ace_studio/gui"
    modules = [path for path in window.rglob("*.py") if path.parent.name != "style"]
    found = [
        f"{path.relative_to(window)}: {line.strip()}"
        for path in modules
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(LITERALS[what], line)
    ]
    assert len(modules) > 150
    assert found == []
