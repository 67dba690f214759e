"""Where the application keeps what is the user's."""

import os

import pytest

from ace_studio.records.devices import make_device
from ace_studio.session.kept.devices import DeviceList
from ace_studio.session.kept.folders import UserFolders, new_run_folder
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore
from tests.cli.fake_engine import result


def test_everything_of_a_portable_archive_is_in_its_folder(tmp_path):
    folders = UserFolders.inside(tmp_path)
    places = {folders.settings, folders.trust, folders.history, folders.runs, folders.autosave}
    assert len(places) == 5
    assert all(place.is_relative_to(tmp_path) for place in places)
    assert list(tmp_path.iterdir()) == []


def test_two_runs_in_the_same_second_have_two_folders(tmp_path):
    first = new_run_folder(tmp_path, "net.toml")
    first.mkdir()
    second = new_run_folder(tmp_path, "net.toml")
    assert first.name.endswith("-net")
    assert second != first and not second.exists()


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions elsewhere")
def test_whatever_is_kept_lies_in_folders_that_only_the_user_can_open(tmp_path):
    folders = UserFolders.inside(tmp_path / "user")
    before = os.umask(0)
    try:
        Settings(folders.settings).add_recent("/a.toml")
        TrustStore(folders.trust).trust("/net.py", "ab12")
        History(folders.history).add(result(), recipe_toml="", title="m", output="/out")
        DeviceList(folders.devices).add(make_device("box", "user@box", ""))
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in folders.own if path.exists()} == {0o700}
    assert (tmp_path / "user").stat().st_mode & 0o777 == 0o700
