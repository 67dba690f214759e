"""The capture method fx."""

from __future__ import annotations

import math

import pytest

from ace_studio.records.errors import AceError
from tests import tiny_models
from tests.engine.capture.captures import capture_by


def test_tracing_leaves_the_names_of_the_users_module_as_they_were() -> None:
    before = dict(globals())
    with pytest.raises(AceError):
        capture_by("fx", tiny_models.data_dependent().module, tiny_models.data_dependent().examples)
    assert math.sqrt.__module__ == "math"
    assert {name: value for name, value in globals().items() if before.get(name) is not value} == {}
    assert "len" not in globals()
