"""A copy of a file with a patch in it; the file itself stays as it is."""

from __future__ import annotations

import difflib

import pytest

from ace_studio.records.errors import AceError
from ace_studio.session.patched_copy import write_patched_copy

OLD = "".join(f"line {number}\n" for number in range(40))


def patch_to(new):
    return "".join(difflib.unified_diff(OLD.splitlines(True), new.splitlines(True), "m.py", "m.py"))


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("line 20\n", "line 20, changed\nand one more\n"),
        OLD.replace("line 0\n", "").replace("line 39\n", "the end\n"),
        "import torch\n" + OLD,
    ],
)
def test_a_patch_gives_the_text_that_it_was_made_of(new, tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD, encoding="utf-8")
    assert write_patched_copy(file, patch_to(new)).read_text(encoding="utf-8") == new


def test_a_file_that_changed_since_is_not_patched(tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD.replace("line 20", "edited"), encoding="utf-8")
    with pytest.raises(AceError, match="not as it was"):
        write_patched_copy(file, patch_to(OLD.replace("line 20\n", "")))
    assert [path.name for path in tmp_path.iterdir()] == ["m.py"]


def test_the_copy_stands_beside_the_file_and_replaces_no_other(tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD, encoding="utf-8")
    patch = patch_to(OLD.replace("line 20\n", ""))
    copies = [write_patched_copy(file, patch).name for _ in range(2)]
    assert copies == ["m_fixed.py", "m_fixed1.py"]
    assert file.read_text(encoding="utf-8") == OLD
