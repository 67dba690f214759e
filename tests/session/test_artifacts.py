"""Artifacts are copied whole or not at all."""

from pathlib import Path
from typing import IO

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import RunStatus, TargetRun
from ace_studio.records.safe_file import file_sha256
from ace_studio.session.artifacts import copy_artifact, export_run
from ace_studio.session.kept.folders import UserFolders


def test_a_file_is_copied_with_its_weights_and_its_checksum(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    source.mkdir()
    place.mkdir()
    (source / "m.xml").write_bytes(b"<net/>")
    (source / "m.bin").write_bytes(b"weights")
    (source / "other.bin").write_bytes(b"no")
    written = copy_artifact(source / "m.xml", place / "mine.xml")
    assert sorted(path.name for path in place.iterdir()) == ["mine.bin", "mine.xml", "mine.xml.sha256"]
    assert written[place / "mine.bin"] == file_sha256(source / "m.bin")
    sums = (place / "mine.xml.sha256").read_text().splitlines()
    assert sums[0] == f"{file_sha256(source / 'm.xml')}  mine.xml"


def test_weights_whose_name_is_inside_the_file_keep_it(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"1")
    (tmp_path / "m.onnx.data").write_bytes(b"2")
    target = tmp_path / "to"
    target.mkdir()
    copy_artifact(tmp_path / "m.onnx", target / "mine.onnx")
    assert {path.name for path in target.iterdir()} == {"mine.onnx", "m.onnx.data", "mine.onnx.sha256"}


def test_a_folder_is_copied_whole_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "inner" / "a").write_bytes(b"a")
    place = tmp_path / "place"
    place.mkdir()
    copy_artifact(tmp_path / "package", place)
    assert (place / "package" / "inner" / "a").read_bytes() == b"a"
    assert (place / "package.sha256").read_text().endswith("  package/inner/a\n")


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.xml").write_bytes(b"x")
    (tmp_path / "m.bin").write_bytes(b"y")
    place = tmp_path / "place"
    place.mkdir()
    copied: list[IO[bytes]] = []

    def full(source: IO[bytes], target: IO[bytes]) -> None:
        if copied:
            raise OSError(28, "No space left on device")
        copied.append(target)
        target.write(source.read())

    monkeypatch.setattr("ace_studio.session.artifacts.shutil.copyfileobj", full)
    with pytest.raises(AceError, match="could not be copied") as caught:
        copy_artifact(tmp_path / "m.xml", place)
    assert "No space left" in caught.value.problem.why
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", ["m.onnx.data", "package/weights/key", "package/weights", "package", "m.onnx"])
@pytest.mark.parametrize("is_there", [True, False])
def test_no_secret_that_a_link_beside_an_artifact_leads_to_is_copied_with_it(
    tmp_path: Path, name: str, is_there: bool
) -> None:
    key, run, place = tmp_path / "home" / "key", tmp_path / "run", tmp_path / "place"
    for folder in (key.parent, run, place):
        folder.mkdir()
    if is_there:
        key.write_text("secret")
    (run / "m.onnx").write_bytes(b"1")
    (run / "package" / "inner").mkdir(parents=True)
    (run / "package" / "inner" / "a").write_bytes(b"a")
    link = run / name
    if link.is_dir():
        link.rename(run / "elsewhere")
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(key.parent if name.endswith(("weights", "package")) else key)
    artifact = "m.onnx" if "onnx" in name else "package"
    record = TargetRun(target="any", status=RunStatus.OK, artifact=artifact)
    with pytest.raises(AceError) as caught:
        export_run((record,), 0, folder=run, destination=place)
    assert caught.value.problem.code is ErrorCode.BAD_FILE
    assert list(place.iterdir()) == []


def test_links_inside_an_artifact_are_copied_as_the_files_that_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "run" / "package").mkdir(parents=True)
    (tmp_path / "run" / "package" / "a").write_bytes(b"a")
    (tmp_path / "run" / "package" / "b").symlink_to("a")
    written = copy_artifact(tmp_path / "run" / "package", tmp_path / "copy")
    assert {path.name: path.read_bytes() for path in written} == {"a": b"a", "b": b"a"}
    assert not (tmp_path / "copy" / "b").is_symlink()


def test_a_copy_does_not_go_through_links_in_the_folder_that_it_is_copied_to(tmp_path: Path) -> None:
    notes, place = tmp_path / "home" / "notes", tmp_path / "place"
    for folder in (notes.parent, place, tmp_path / "package" / "inner"):
        folder.mkdir(parents=True)
    notes.write_text("mine")
    (tmp_path / "m.onnx").write_bytes(b"1")
    (tmp_path / "package" / "inner" / "notes").write_bytes(b"theirs")
    for name in ("m.onnx", "m.onnx.sha256"):
        (place / name).symlink_to(notes)
    copy_artifact(tmp_path / "m.onnx", place)
    assert (place / "m.onnx").read_bytes() == b"1"
    (place / "package").mkdir()
    (place / "package" / "inner").symlink_to(notes.parent)
    with pytest.raises(AceError, match="could not be copied"):
        copy_artifact(tmp_path / "package", place)
    assert notes.read_text() == "mine"
    assert sorted(path.name for path in place.iterdir()) == ["m.onnx", "m.onnx.sha256", "package"]


def test_an_artifact_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(AceError) as caught:
        copy_artifact(tmp_path / "gone.onnx", tmp_path)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("to", ["user/data/trusted.json", "user/data", "user", "link/data/new"])
def test_no_artifact_becomes_the_list_of_trusted_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    folders = UserFolders.inside(tmp_path / "user")
    monkeypatch.setattr(UserFolders, "of_user", classmethod(lambda cls: folders))
    folders.data.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "user")
    artifact = tmp_path / "run" / "data"
    artifact.mkdir(parents=True)
    (artifact / "trusted.json").write_text("[]")
    source = artifact / "trusted.json" if to == "user/data" else artifact
    with pytest.raises(AceError, match="not a place for an artifact"):
        copy_artifact(source, tmp_path / to)
    assert not folders.trust.exists()


@pytest.mark.parametrize(
    ("artifact", "to", "written"),
    [
        ("artifacts/m.pt2", "mine.pt2", "mine.pt2"),
        ("artifacts/m.pt2", "mine", "mine.pt2"),
        ("artifacts/m.pt2", ".profile", ".profile.pt2"),
        ("artifacts/m.pt2", "mine.sh", ErrorCode.USAGE),
        ("../secret.pt2", "mine.pt2", ErrorCode.BAD_FILE),
        ("", "mine.pt2", ErrorCode.NOT_FOUND),
    ],
)
def test_a_run_gives_only_artifacts_of_its_own_folder_under_names_of_their_kind(
    tmp_path: Path, artifact: str, to: str, written: str
) -> None:
    folder = tmp_path / "run"
    (folder / "artifacts").mkdir(parents=True)
    (folder / "artifacts" / "m.pt2").write_bytes(b"m")
    (tmp_path / "secret.pt2").write_bytes(b"s")
    run = TargetRun(target="eager", status=RunStatus.OK, artifact=artifact)
    if not isinstance(written, ErrorCode):
        assert tmp_path / written in export_run((run,), 0, folder=folder, destination=tmp_path / to)
        assert written == to or not (tmp_path / to).exists()
        return
    with pytest.raises(AceError) as caught:
        export_run((run,), 0, folder=folder, destination=tmp_path / to)
    assert caught.value.problem.code is written
    assert not (tmp_path / to).exists()
