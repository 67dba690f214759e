"""Zip files that are cut, damaged or lie about their content are refused."""

import zipfile

import pytest
import torch

from ace_studio.engine.load.archive import open_archive
from ace_studio.records.errors import AceError
from tests.engine.load.samples import Plain, refusal


def test_a_cut_zip_and_a_changed_byte_are_told(tmp_path):
    torch.save(Plain().state_dict(), tmp_path / "w.pt")
    whole = (tmp_path / "w.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    assert "incomplete zip" in refusal(tmp_path / "cut.pt")
    place = whole.index(b"linear.weight")
    (tmp_path / "changed.pt").write_bytes(whole[:place] + b"Linear" + whole[place + 6 :])
    assert "checksum" in refusal(tmp_path / "changed.pt")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\0" * 200_000_000)
    assert "would unpack to 200000000 bytes" in refusal(tmp_path / "bomb.pt")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "twice.pt", "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02N.")
        archive.writestr("m/data.pkl", b"\x80\x02N.")
    assert "readers disagree" in refusal(tmp_path / "twice.pt")


def test_members_are_found_with_and_without_the_outer_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("m/data.pkl", b"1234")
        archive.writestr("version", b"3")
    opened = open_archive(tmp_path / "a.zip")
    assert opened.inner_names == {"data.pkl", "version"}
    info = opened.find("data.pkl")
    assert info is not None and opened.read(info, limit=4) == b"1234"
    assert opened.find("version") is not None and opened.find("pkl") is None
    opened.check_content()


def test_a_part_over_the_limit_is_not_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data.pkl", b"12345")
    opened = open_archive(tmp_path / "a.zip")
    with pytest.raises(AceError, match="of 5 bytes"):
        opened.read(opened.members["data.pkl"], limit=4)


def test_an_encrypted_part_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data.pkl", b"12345")
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(AceError, match="encrypted"):
        open_archive(tmp_path / "a.zip")
