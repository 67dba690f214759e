"""Applying our own patches."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.patches import apply_patch, make_patch, together

LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "if a:", "  c"]), max_size=12)


@given(before=LINES, after=LINES, ends=st.tuples(st.booleans(), st.booleans()))
def test_a_patch_makes_the_new_text_of_the_old(before, after, ends):
    old, new = ("\n".join(lines) + "\n" * has_end for lines, has_end in zip((before, after), ends, strict=True))
    assert apply_patch(old, make_patch(old, new, name="net.py")) == new


def test_two_patches_of_one_file_fit_one_after_the_other():
    lines = [f"line {number}\n" for number in range(30)]

    def patch(at: int) -> str:
        changed = [*lines[:at], "new\n", "more\n", *lines[at + 1 :]]
        return "".join(difflib.unified_diff(lines, changed, "x", "x"))

    text = apply_patch(apply_patch("".join(lines), patch(3)), patch(20))
    assert text.splitlines()[3:5] == text.splitlines()[21:23] == ["new", "more"] and len(text.splitlines()) == 32


def test_patches_whose_surroundings_overlap_are_put_together_into_one():
    text = "a\nb\nc\nd\ne\n"
    first, second = (make_patch(text, text.replace(one, one.upper()), name="x") for one in ("b\n", "d\n"))
    both = together(text, [first, second])
    assert apply_patch(text, both) == "a\nB\nc\nD\ne\n"
    assert both.startswith("--- x\n+++ x\n@@ -1,5 +1,5 @@\n")
    with pytest.raises(ValueError, match="is not what"):
        together(text, [first, first])


def test_a_patch_of_another_text_is_refused():
    patch = "".join(difflib.unified_diff(["a\n", "b\n"], ["a\n", "c\n"], "x", "x"))
    assert apply_patch("a\nb\n", patch) == "a\nc\n"
    with pytest.raises(ValueError, match="line 1 is not what"):
        apply_patch("a\nd\n", patch)
