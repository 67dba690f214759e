"""Where the application keeps what is the user's."""

from ace_studio.session.kept.folders import UserFolders, new_run_folder


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
