"""Element types and the rows of the shape table."""

from __future__ import annotations

import pytest

from ace_studio.records.tensors import bytes_per_element


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("bool", 1), ("complex128", 16)])
def test_the_bytes_of_an_element(dtype, size):
    assert bytes_per_element(dtype) == size


def test_a_type_without_a_fixed_size_has_none():
    assert bytes_per_element("object") == 0
