"""The files of an artifact, and links among them."""

import os

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.run_artifact import artifact_files


@pytest.mark.parametrize("name", ["net.xml", "folder"])
def test_no_file_of_an_artifact_leads_out_of_its_folder(tmp_path, name):
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "net.xml").write_text("")
    (tmp_path / "key").write_text("secret")
    for link in ("net.bin", "folder/key"):
        (work / link).symlink_to(tmp_path / "key")
    with pytest.raises(AceError) as caught:
        artifact_files(work / name)
    assert caught.value.problem.code is ErrorCode.BAD_FILE
    for link in ("net.bin", "folder/key"):
        (work / link).unlink()
        (work / link).symlink_to(work / "net.xml")
    if name == "folder":
        (work / link).unlink()
        (work / link).write_text("weights")
    assert len(artifact_files(work / name)) == (1 if name == "folder" else 2)


def test_a_pipe_in_the_place_of_an_artifact_is_named_as_that(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes by name here")
    os.mkfifo(tmp_path / "net.pt2")
    with pytest.raises(AceError, match="no regular file"):
        artifact_files(tmp_path / "net.pt2")
    with pytest.raises(AceError, match="no longer exists"):
        artifact_files(tmp_path / "gone.pt2")
