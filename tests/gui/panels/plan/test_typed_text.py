"""Reads and writes recipe values that are typed as one line."""

from __future__ import annotations

import pytest

from ace_studio.gui.panels.plan.typed_text import read_counts, read_pairs


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "8; 16", "²"])
def test_what_is_no_batch_size_is_refused(text):
    with pytest.raises(ValueError, match="not a whole number"):
        read_counts(text)


@pytest.mark.parametrize(
    ("text", "wrong"), [("a", "not a pair"), ("a =", "not a pair"), ("= 1", "not a pair"), ("a=1,a=2", "twice")]
)
def test_what_is_no_pair_is_refused(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read_pairs(text)
