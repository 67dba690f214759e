"""Trust is by content, and can be withdrawn."""

import os
from pathlib import Path

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.session.kept.trust import TrustStore
from tests.other_users import STRANGER, as_root, folder_of_everybody, give_away, posix


def test_trust_is_by_content_and_shared_between_windows(tmp_path: Path) -> None:
    one, other = TrustStore(tmp_path / "t.json"), TrustStore(tmp_path / "t.json")
    one.trust("/a.py", "a" * 64)
    other.trust("/b.py", "b" * 64)
    assert one.is_trusted("b" * 64)
    later = TrustStore(tmp_path / "t.json")
    assert later.hashes == ("a" * 64, "b" * 64)
    later.revoke("a" * 64)
    assert one.hashes == other.hashes == TrustStore(tmp_path / "t.json").hashes == ("b" * 64,)
    (tmp_path / "t.json").unlink()
    assert one.hashes == ()


def test_a_damaged_trust_list_trusts_nothing_and_is_put_aside_before_a_new_one(tmp_path: Path) -> None:
    damaged = '[{"sha256": "aa"}]'
    (tmp_path / "t.json").write_text(damaged)
    store = TrustStore(tmp_path / "t.json")
    assert store.hashes == ()
    with pytest.raises(AceError, match="could not be read") as caught:
        store.trust("/b.py", "b" * 64)
    assert str(tmp_path / "t.json.bad") in caught.value.problem.remedy and store.hashes == ()
    store.trust("/b.py", "b" * 64)
    assert store.hashes == ("b" * 64,) and (tmp_path / "t.json.bad").read_text() == damaged


def test_trust_that_cannot_be_stored_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = TrustStore(tmp_path / "file" / "t.json")
    with pytest.raises(AceError):
        store.trust("/a.py", "a" * 64)
    assert not store.is_trusted("a" * 64)


def test_an_empty_hash_is_never_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "t.json")
    store.trust("/a.py", "")
    assert not store.is_trusted("")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_list_is_its_users_own_and_trusts_nothing_if_others_may_write_it(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    TrustStore(path).trust("/a.py", "a" * 64)
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o620)
    assert TrustStore(path).hashes == ()
    path.chmod(0o600)
    assert TrustStore(path).hashes == ("a" * 64,)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir(mode=0o755)
    (tmp_path / "project" / "net.py").write_text("import torch")
    return tmp_path / "project"


def test_a_trusted_folder_that_was_deleted_and_made_anew_is_not_trusted_until_it_is_trusted_again(
    tmp_path: Path, project: Path
) -> None:
    store = TrustStore(tmp_path / "t.json")
    store.trust_folder(project)
    assert store.folders_of(str(project / "net.py")) == (str(project),)
    assert store.trust_covered(str(project / "net.py"), "a" * 64)
    project.rename(tmp_path / "aside")  # so that its inode is not used again
    project.mkdir(mode=0o755)
    (project / "net.py").write_text("import evil")
    assert store.folders_of(str(project / "net.py")) == () and not store.is_trusted("a" * 64)
    assert not store.trust_covered(str(project / "net.py"), "b" * 64)
    store.trust_folder(project)
    assert store.trust_covered(str(project / "net.py"), "b" * 64) and len(store.files) == 1


@as_root
def test_a_trusted_folder_that_another_user_made_anew_is_not_trusted_though_the_disk_gave_it_the_same_number(
    tmp_path: Path, project: Path
) -> None:
    store = TrustStore(tmp_path / "t.json")
    store.trust_folder(project)
    give_away(project)
    assert store.folders_of(str(project / "net.py")) == ()


@posix
@pytest.mark.parametrize("opened", ["folder", "file", "subfolder"])
def test_what_others_could_have_put_into_a_trusted_folder_is_not_trusted(
    tmp_path: Path, project: Path, opened: str
) -> None:
    file = project / "net.py"
    if opened == "subfolder":
        (project / "parts").mkdir()
        file = project / "parts" / "layer.py"
        file.write_text("")
    store = TrustStore(tmp_path / "t.json")
    store.trust_folder(project)
    assert store.folders_of(str(file))
    {"folder": project, "file": file, "subfolder": file.parent}[opened].chmod(0o777)
    assert store.folders_of(str(file)) == ()


@as_root
def test_a_file_that_another_user_owns_in_a_trusted_folder_is_not_trusted(tmp_path: Path, project: Path) -> None:
    store = TrustStore(tmp_path / "t.json")
    store.trust_folder(project)
    give_away(project / "net.py")
    assert store.folders_of(str(project / "net.py")) == ()


@posix
@pytest.mark.parametrize("above", [False, True])
def test_a_folder_that_anybody_can_fill_or_replace_cannot_be_trusted(tmp_path: Path, above: bool) -> None:
    folder = folder_of_everybody(tmp_path / "shared", 0o777)
    if above:
        folder /= "project"
        folder.mkdir()
    store = TrustStore(tmp_path / "t.json")
    with pytest.raises(AceError) as caught:
        store.trust_folder(folder)
    problem = caught.value.problem
    assert problem.code is ErrorCode.USAGE and "other users may write" in problem.why and problem.remedy
    assert store.files == ()


@as_root
def test_a_folder_of_a_colleague_is_trusted_with_what_the_colleague_puts_there(tmp_path: Path, project: Path) -> None:
    for path in (project, project / "net.py"):
        give_away(path)
    store = TrustStore(tmp_path / "t.json")
    store.trust_folder(project)
    assert store.folders_of(str(project / "net.py"))
    give_away(project / "net.py", STRANGER + 1)
    assert store.folders_of(str(project / "net.py")) == ()


def test_a_folder_that_an_older_release_trusted_by_its_name_alone_is_asked_for_again(
    tmp_path: Path, project: Path
) -> None:
    old = f'[{{"sha256": "folder:{project}", "path": "{project}", "date": "2026-11-01"}}]'
    (tmp_path / "t.json").write_text(old)
    (tmp_path / "t.json").chmod(0o600)
    assert TrustStore(tmp_path / "t.json").folders_of(str(project / "net.py")) == ()
