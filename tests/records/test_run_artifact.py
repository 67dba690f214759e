"""The files of an artifact, and links among them."""

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.roots import Roots, present
from ace_studio.records.run_artifact import artifact_files


@pytest.mark.parametrize("name", ["net.xml", "folder"])
def test_what_acts_for_others_takes_no_file_that_leads_out_of_its_roots(tmp_path, name):
    work = (tmp_path / "work").resolve()
    (work / "folder").mkdir(parents=True)
    (work / "net.xml").write_text("")
    (tmp_path / "key").write_text("secret")
    for link in ("net.bin", "folder/key"):
        (work / link).symlink_to(tmp_path / "key")
    assert artifact_files(work / name)
    token = present.set(Roots(read=(work,)))
    try:
        with pytest.raises(AceError) as caught:
            artifact_files(work / name)
    finally:
        present.reset(token)
    assert caught.value.problem.code is ErrorCode.UNTRUSTED
