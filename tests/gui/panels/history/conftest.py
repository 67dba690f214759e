"""A history with three runs."""

from datetime import UTC, datetime

import pytest

from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.session.fake_engine_link import result, target_run


@pytest.fixture
def past(desk, tmp_path):
    """A window whose user has made three runs; only the newest still has its folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "report.html").write_text("<html></html>", encoding="utf-8")
    (tmp_path / "m.py").write_text("def make_model(): ...", encoding="utf-8")
    text = recipe_text(Recipe(model=ModelChoice(source="m.py", entry="make_model")))
    for day, (title, output) in enumerate((("old.py", "/gone"), ("other.py", "/gone"), ("m.py", str(folder))), start=1):
        desk.session.history.store.add(
            result(target_run("openvino" if day == 3 else "eager")), recipe_toml=text, title=title, output=output,
            folder=str(tmp_path), date=datetime(2026, 11, day, 12, 0, tzinfo=UTC),
        )  # fmt: skip
    desk.open_example()
    desk.panel("history")
    desk.settle()
    return desk
