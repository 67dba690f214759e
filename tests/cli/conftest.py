"""Fixtures of the command line: a fake engine and a recipe."""

import pytest

from ace_studio.cli import follow
from tests.cli.fake_engine import FakeExecutor


@pytest.fixture
def answer_with(monkeypatch):
    monkeypatch.setattr(follow, "WorkerExecutor", FakeExecutor)
    FakeExecutor.requests = []

    def script(*events):
        FakeExecutor.script = events

    return script


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('format = 1\n[model]\nsource = "model.py"\nentry = "make"\n', encoding="utf-8")
    return path
