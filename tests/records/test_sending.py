"""What may leave this machine: the verdict on each file, and the questions."""

import os
from pathlib import Path

import pytest

from ace_studio.records.sending import Departure, SendVerdict, Word, host_of, leaving


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "net"
    made.mkdir()
    return made


def verdict(path: Path, folder: Path, word: Word | None = None) -> SendVerdict:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("x")
    return leaving([path], folder, word)[0].verdict


@pytest.mark.parametrize(
    "name",
    [".ssh/config", ".SSH/known_hosts", ".gnupg/pubring.kbx", ".aws/config", ".netrc", "server.pem", "id_rsa",
     "id_work", "ID_ED25519", "id_ecdsa.pub", ".env", ".env.local", "prod.env", "keyrings/login.keyring",
     ".git-credentials", ".git/config", "tls.key", "passwords.kdbx", "credentials.json", "release.jks"],
)  # fmt: skip
def test_keys_and_passwords_are_known_by_their_kind(name, folder):
    assert verdict(folder / name, folder) is SendVerdict.SECRET
    assert verdict(folder / name, folder, Word(files=(str(folder / name),))) is SendVerdict.GOES


@pytest.mark.parametrize("name", ["model.py", "id_map.json", "weights.pt", "keys.py", "env/data.bin", "tokens.npz"])
def test_other_files_of_the_folder_go(name, folder):
    assert verdict(folder / name, folder) is SendVerdict.GOES


def test_a_link_is_judged_by_what_it_leads_to_and_by_its_own_name(folder, tmp_path):
    for name in ("elsewhere.bin", "id_rsa"):
        (tmp_path / name).write_text("x")
    for name, target in (("a", "elsewhere.bin"), ("b", "id_rsa"), ("model.pem", "elsewhere.bin")):
        (folder / name).symlink_to(tmp_path / target)
    (folder / "inside.bin").write_text("x")
    (folder / "c").symlink_to(folder / "inside.bin")
    (folder / "out").symlink_to(tmp_path)
    names = ("a", "b", "model.pem", "c", "out/elsewhere.bin")
    found = leaving([folder / name for name in names], folder)
    assert [one.verdict for one in found] == ["outside", "secret", "secret", "goes", "outside"]
    assert found[4].path == tmp_path / "elsewhere.bin"


def test_a_folder_that_is_a_link_itself_is_the_one_that_it_leads_to(folder, tmp_path):
    (tmp_path / "called").symlink_to(folder)
    assert verdict(tmp_path / "called" / "model.py", tmp_path / "called") is SendVerdict.GOES


def test_a_folder_that_is_named_by_hand_gives_all_but_its_secrets(folder, tmp_path):
    word = Word(files=(str(tmp_path / "data"),))
    assert verdict(tmp_path / "data" / "a.npz", folder, word) is SendVerdict.GOES
    assert verdict(tmp_path / "data" / "id_rsa", folder, word) is SendVerdict.SECRET


def test_another_file_in_the_place_of_one_that_was_looked_at_is_not_opened(folder, tmp_path):
    (folder / "data").write_text("x")
    (file,) = leaving([folder / "data"], folder)
    with file.open() as stream:
        assert stream.read() == b"x"
    (tmp_path / "key").write_text("canary")
    (folder / "data").unlink()
    (folder / "data").symlink_to(tmp_path / "key")
    with pytest.raises(OSError, match="that was looked at"):
        file.open()
    (folder / "data").unlink()
    os.mkfifo(folder / "data")
    with pytest.raises(OSError, match="not a regular file"):
        file.open()  # and nobody waits for a writer


def test_many_files_of_one_folder_elsewhere_are_asked_for_as_that_folder(folder, tmp_path):
    (tmp_path / "data").mkdir()
    paths = [tmp_path / "data" / f"{number}.npy" for number in range(20)]
    for path in paths:
        path.write_text("12345")
    several, few = (Departure(folder=folder, files=leaving(some, folder)) for some in (paths, paths[:3]))
    (problem,) = several.refusals("box", is_named=True)
    assert problem.where == str(tmp_path / "data") and "20 files with 100 bytes" in problem.why
    assert [one.where for one in few.refusals("box", is_named=True)] == list(map(str, paths[:3]))


def test_a_question_lists_some_files_and_counts_the_others(folder):
    for number in range(300):
        (folder / f"{number:03}").write_text("")
    (problem,) = Departure(folder=folder, files=leaving(sorted(folder.iterdir()), folder)).refusals(
        "box", is_named=False
    )
    lines = problem.details.splitlines()
    assert len(lines) == 202 and lines[1] == "000 (0 bytes)" and lines[-1] == f"100 more in {folder}"


def test_a_key_of_the_list_names_its_host_and_no_hash_of_code_does(folder):
    (folder / "a").write_text("")
    (problem,) = Departure(folder=folder, files=leaving([folder / "a"], folder)).refusals("a@[::1]", is_named=False)
    assert host_of(problem.details.splitlines()[0].removeprefix("sha256:")) == "a@[::1]"
    assert host_of("0" * 64) == ""
