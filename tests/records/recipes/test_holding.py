"""The second writer of a recipe is told who changes it."""

import os
import socket

import msgspec
import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.edit import add_controls
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.holding import Holder, holding
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.records.scratch import process_mark

CONTROL = CaptureControl(function="net:magic", treat_as=ControlKind.NONSTRICT_TRACE)


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('format = 1\n[model]\nsource = "net.py"\n')
    return path


def hold(recipe, **values):
    found = {"process": process_mark(os.getpid()), "machine": socket.gethostname(), "user": "anna"}
    holder = Holder(**{**found, "since": "2026-01-02T03:04:05+00:00", **values})
    (recipe.parent / ".recipe.toml.held").write_bytes(msgspec.json.encode(holder))


def test_the_second_writer_is_told_process_user_and_time_and_nothing_is_written(recipe):
    hold(recipe)
    before = recipe.read_bytes()
    with pytest.raises(AceError) as caught:
        add_controls(recipe, [CONTROL])
    why = caught.value.problem.why
    assert str(os.getpid()) in why and "user anna" in why and "since 2026-01-02T03:04:05" in why
    assert recipe.read_bytes() == before


def test_a_writer_that_was_killed_holds_nothing(recipe):
    hold(recipe, process="999999.1.1")
    assert add_controls(recipe, [CONTROL]) == (CONTROL,)
    assert read_recipe(recipe).capture.controls == (CONTROL,)
    assert sorted(one.name for one in recipe.parent.iterdir()) == ["recipe.toml", "recipe.toml.bak"]


def test_a_holder_of_another_machine_counts_and_so_does_one_that_cannot_be_read(recipe):
    hold(recipe, process="999999.1.1", machine="elsewhere")
    with pytest.raises(AceError, match="changed by somebody else"), holding(recipe, wait_s=0):
        pass
    (recipe.parent / ".recipe.toml.held").write_bytes(b"?")
    with pytest.raises(AceError, match="another process"), holding(recipe, wait_s=0):
        pass


def test_a_link_and_its_file_are_one_recipe(recipe, tmp_path):
    (tmp_path / "link.toml").symlink_to(recipe)
    with holding(recipe), pytest.raises(AceError, match="is being changed"), holding(tmp_path / "link.toml", wait_s=0):
        pass
    assert not (tmp_path / ".recipe.toml.held").exists()
