"""The user's own folders are open to nobody else."""

import os

import pytest

from ace_studio.records.private_folder import make_private

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no such permissions elsewhere")


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(folder):
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_private_whatever_the_umask_is(tmp_path, open_umask):
    make_private(tmp_path / "share" / "ace-studio" / "graphs")
    for folder in ("share/ace-studio/graphs", "share/ace-studio", "share"):
        assert mode(tmp_path / folder) == 0o700


def test_folders_of_the_program_that_are_open_are_narrowed_and_those_above_are_left(tmp_path, open_umask):
    (tmp_path / "share" / "ace-studio" / "graphs").mkdir(parents=True)
    make_private(tmp_path / "share" / "ace-studio" / "graphs")
    assert (mode(tmp_path / "share" / "ace-studio" / "graphs"), mode(tmp_path / "share" / "ace-studio")) == (
        0o700,
        0o700,
    )
    assert mode(tmp_path / "share") == 0o777
