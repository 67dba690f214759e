"""Edits of a source file keep everything else."""

import ast
from pathlib import Path

import pytest
from torch import nn

from ace_studio.engine.fixes import Spot, proposed_fixes, unified_diff
from ace_studio.engine.fixes.source_text import Edit, SourceText, definitions, new_name, read_names, stored_names
from ace_studio.records.fixes import FixKind
from ace_studio.records.patches import apply_patch
from tests.engine.fixes.branches import EARLY, EXPRESSION, found, source_of


def test_only_the_lines_of_the_branch_change(tmp_path):
    one = found(tmp_path, EARLY, FixKind.WHERE)
    path = tmp_path / "net.py"
    spot = Spot.of(str(path), 9, nn.Identity())
    patch = unified_diff(spot.source, one.text, folder=tmp_path)
    assert patch.splitlines()[:2] == ["--- net.py", "+++ net.py"]
    removed = [line[1:].strip() for line in patch.splitlines()[2:] if line.startswith("-")]
    assert removed == ["if x.mean() > 0:  # here", "return torch.relu(x) + 1", "return y"]
    assert "# else keep" in one.text and "# decide" in one.text
    assert apply_patch(path.read_text(), patch) == one.text


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_ends_and_a_missing_last_one_survive(tmp_path, ending):
    path = tmp_path / "net.py"
    text = source_of(EXPRESSION).rstrip("\n").replace("\n", ending)
    path.write_bytes(text.encode())
    line = next(number for number, one in enumerate(text.split(ending), start=1) if "# here" in one)
    spot = Spot.of(str(path), line, nn.Identity())
    one = next(one for one in proposed_fixes(spot) if one.kind is FixKind.WHERE)
    assert one.text.count(ending) == text.count(ending) and not one.text.endswith("\n")
    assert apply_patch(text, unified_diff(spot.source, one.text, folder=tmp_path)) == one.text


def parsed(text: str) -> SourceText:
    return SourceText.parse(Path("net.py"), text)


def test_offsets_count_characters_although_python_counts_bytes():
    source = parsed("x = 'ü' + y\nz = 1")
    name = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "y")
    assert source.segment(name) == "y"
    assert source.text[source.start_of(source.tree.body[1]) :] == "z = 1"


def test_edits_are_applied_in_any_order():
    source = parsed("a + b\n")
    assert source.edited([Edit(4, 5, "bb"), Edit(0, 1, "aa"), Edit(5, 5, " + c")]) == "aa + bb + c\n"


def test_a_file_that_is_not_python_in_utf_8_is_none(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = \xff")
    (tmp_path / "b.py").write_text("x = (")
    assert [SourceText.read(tmp_path / name) for name in ("a.py", "b.py", "gone.py")] == [None, None, None]


def test_names_are_told_by_what_happens_to_them():
    body = ast.parse("b = a\nc += b\nfor i in a: pass\nb = 2").body
    assert stored_names(body) == ["b", "c", "i"]
    assert read_names(body) == {"a", "b", "c"}


def test_only_names_assigned_once_have_a_definition():
    function = ast.parse("def f():\n    a = 1\n    b = 2\n    b = 3\n    c, d = 4, 5\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(definitions(function)) == ["a"]


def test_a_new_name_does_not_collide_and_is_taken_afterwards():
    taken = {"flag"}
    assert [new_name("flag", taken), new_name("flag", taken), new_name("x", taken)] == ["flag_2", "flag_3", "x"]
