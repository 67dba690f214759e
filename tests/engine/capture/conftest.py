"""Captures that several tests read."""

import pytest

from tests.engine.capture.captures import KeptCaptures


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> KeptCaptures:
    """Captures of tiny models, made at the first use; they must not be changed."""
    return KeptCaptures(tmp_path_factory.mktemp("kept") / "captures")
