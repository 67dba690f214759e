"""A stranger's recipe sends nothing anywhere; the user's own word sends what it names, and no more."""

import json
import os
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.jobs.hosts import frames
from ace_studio.jobs.hosts.link import HostLink
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.bundle import BundledFile
from ace_studio.records.results import encode_result
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore
from tests.cli.fake_engine import result
from tests.jobs.hosts.pretended_ssh import CANARY, HOST, PretendedSsh, needs_posix, pretend_ssh

pytestmark = needs_posix


@pytest.fixture
def ssh(tmp_path, monkeypatch) -> PretendedSsh:
    """Nothing that is sent to it may hold the canary."""
    return pretend_ssh(tmp_path / "far", monkeypatch)


@pytest.fixture
def user(tmp_path, monkeypatch) -> UserFolders:
    """The folders of a user who has nothing yet."""
    folders = UserFolders.inside(tmp_path / "user")
    monkeypatch.setattr(UserFolders, "of_user", classmethod(lambda cls: folders))
    return folders


@pytest.fixture
def home(tmp_path, monkeypatch, user) -> Path:
    """A home with secrets and with a stranger's folder in it; nothing in that has to be trusted."""
    made = tmp_path / "home"
    for name in (".ssh/id_rsa", ".aws/credentials", "notes/diary.txt", "keys/plain"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(CANARY)
    (made / "gift").mkdir()
    (made / "gift" / "data.bin").write_text("the stranger's data")
    monkeypatch.setenv("HOME", str(made))
    return made


def gift(home: Path, more: str = "", engine: str = "", host: str = HOST) -> str:
    """The stranger's recipe, with a model that has no code to trust."""
    path = home / "gift" / "recipe.toml"
    path.write_text(
        f'format = 1\n[model]\nsource = "timm:resnet18"\n{more}\n[engine]\nhost = "{host}"\n'
        f'python = "{sys.executable}"\n{engine}\n'
    )
    return str(path)


def told(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def link_in(home: Path, target: Path, name: str = "link.bin") -> None:
    (home / "gift" / name).symlink_to(target)


WAYS = {
    "weights by ..": lambda home: gift(home, 'weights = "../.ssh/id_rsa"'),
    "weights by an absolute path": lambda home: gift(home, f'weights = "{home}/.ssh/id_rsa"'),
    "weights by ~": lambda home: gift(home, 'weights = "~/.ssh/id_rsa"'),
    "a diary that is no secret by its name": lambda home: gift(home, 'weights = "../notes/diary.txt"'),
    "a pattern": lambda home: gift(home, engine='files = ["../.ssh/*"]'),
    "a pattern of everything": lambda home: gift(home, engine='files = ["../**/*"]'),
    "data of a folder": lambda home: gift(home, '[calibration]\ninputs = "../notes/"'),
    "weights of several in one file": lambda home: gift(home, 'weights = "../notes/diary.txt:state"'),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [[], ["--trust"]], ids=["", "--trust"])
def test_no_recipe_sends_a_file_to_a_host_that_it_names(way, words, home, ssh, capsys):
    assert run_command(["trace", WAYS[way](home), "--json", *words]) in (2, 5)
    assert not ssh.is_called
    error = told(capsys)["error"]
    assert error["code"] in ("untrusted", "not-found", "usage")


@pytest.mark.parametrize("way", WAYS)
def test_the_users_word_for_a_host_sends_nothing_from_outside_of_the_folder(way, home, ssh):
    run_command(["trace", WAYS[way](home), "--json", "--trust", "--host", HOST])
    assert CANARY not in ssh.received


def test_a_refusal_names_host_files_and_bytes_and_the_words_that_allow_it(home, ssh, capsys):
    path = gift(home)
    assert run_command(["trace", path, "--json"]) == 5 and not ssh.is_called
    error = told(capsys)["error"]
    sizes = [(home / "gift" / name).stat().st_size for name in ("data.bin", "recipe.toml")]
    assert error["what"] == f"Files would be sent to {HOST}" and error["where"] == str(home / "gift")
    assert f"2 files with {sum(sizes):,} bytes" in error["why"] and f"--host {HOST}" in error["remedy"]
    assert error["details"].splitlines()[1:] == [f"data.bin ({sizes[0]} bytes)", f"recipe.toml ({sizes[1]} bytes)"]


def test_a_host_that_the_user_names_gets_the_folder_and_no_question_is_asked(home, ssh):
    assert run_command(["trace", gift(home), "--json", "--host", HOST]) != 5
    assert b"the stranger's data" in ssh.received and ssh.hosts == [HOST]


def test_the_users_host_takes_the_place_of_the_recipes(home, ssh):
    path = gift(home, host="eve@other")
    run_command(["trace", path, "--json", "--host", HOST, "--python", sys.executable])
    assert ssh.hosts == [HOST] and b"the stranger's data" in ssh.received


def test_a_host_of_the_settings_needs_no_question(home, ssh, user):
    Settings(user.settings).set("hosts", f"a@b, {HOST}")
    run_command(["trace", gift(home), "--json"])
    assert b"the stranger's data" in ssh.received


@pytest.mark.parametrize("name", ["link.bin", "id_rsa", "model.pem"])
def test_links_out_of_the_folder_and_secrets_in_it_stay_here_where_nobody_names_them(name, home, ssh):
    if name == "link.bin":
        link_in(home, home / "notes" / "diary.txt", name)
    else:
        (home / "gift" / name).write_bytes(CANARY)
    run_command(["trace", gift(home), "--json", "--host", HOST])
    assert b"the stranger's data" in ssh.received and CANARY not in ssh.received


def test_a_link_to_a_folder_is_not_followed(home, ssh):
    link_in(home, home / "notes", "data")
    run_command(["trace", gift(home, '[calibration]\ninputs = "data/"'), "--json", "--host", HOST])
    run_command(["trace", gift(home, engine='files = ["data/*"]'), "--json", "--host", HOST])
    assert CANARY not in ssh.received


def test_a_file_from_outside_goes_if_it_is_named_by_hand(home, ssh, capsys):
    words = ["trace", gift(home, 'weights = "../notes/diary.txt"'), "--json", "--host", HOST]
    assert run_command(words) == 5 and not ssh.is_called
    error = told(capsys)["error"]
    assert error["where"] == str(home / "notes" / "diary.txt") and f"--send {error['where']}" in error["remedy"]
    run_command([*words, "--send", str(home / "keys" / "plain")])
    assert CANARY not in ssh.received  # another file is no answer
    run_command([*words, "--send", str(home / "notes" / "diary.txt")])
    assert CANARY in ssh.received


def test_a_secret_goes_only_if_that_very_file_is_named_by_hand(home, ssh, capsys):
    words = ["trace", gift(home, 'weights = "../.ssh/id_rsa"'), "--json", "--host", HOST]
    assert run_command([*words, "--send", str(home / ".ssh")]) == 5 and not ssh.is_called
    assert "keys or passwords" in told(capsys)["error"]["why"]
    run_command([*words, "--send", str(home / ".ssh" / "id_rsa")])
    assert CANARY in ssh.received


def answering(monkeypatch, answer: str) -> list[str]:
    """A person at the terminal who always says this; what was asked."""
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text) or answer == "yes")
    return asked


def test_at_a_terminal_the_list_is_asked_for_once_and_the_yes_is_kept_for_this_list(home, ssh, monkeypatch, capsys):
    asked = answering(monkeypatch, "yes")
    path = gift(home)
    run_command(["trace", path])
    said = capsys.readouterr().err
    assert len(asked) == 1 and HOST in asked[0] and "data.bin (" in said and "recipe.toml (" in said
    assert b"the stranger's data" in ssh.received
    (home / "gift" / "data.bin").write_text("edited")  # other contents of the same files
    run_command(["trace", path])
    assert len(asked) == 1 and b"edited" in ssh.received


def test_a_no_sends_nothing_and_is_no_yes_later(home, ssh, monkeypatch):
    answering(monkeypatch, "no")
    assert run_command(["trace", gift(home)]) == 5
    assert run_command(["trace", gift(home)]) == 5 and not ssh.is_called


@pytest.mark.parametrize("change", ["host", "list", "folder", "link"])
def test_another_host_another_list_or_another_folder_is_asked_about_again(change, home, ssh, monkeypatch):
    asked = answering(monkeypatch, "yes")
    path = gift(home)
    run_command(["trace", path])
    assert len(asked) == 1
    before = len(ssh.received)
    answering(monkeypatch, "no")
    if change == "host":
        gift(home, host="eve@other")
    elif change == "list":
        (home / "gift" / "more.txt").write_text("new")
    elif change == "folder":
        (home / "gift").rename(home / "gift2")
        path = str(home / "gift2" / "recipe.toml")
    else:
        (home / "gift" / "data.bin").unlink()
        link_in(home, home / "notes" / "diary.txt", "data.bin")
        gift(home, '[evaluate]\nmetric = "top-1"\ndata = "data.bin"\n')
    assert run_command(["trace", path]) in (2, 5)
    assert len(ssh.received) == before


def test_files_from_outside_are_asked_for_one_by_one(home, ssh, monkeypatch):
    asked = answering(monkeypatch, "yes")
    (home / "notes" / "w.pt").write_bytes(CANARY)
    gift(home, 'weights = "../notes/w.pt"\n[calibration]\ninputs = "../keys/"')
    run_command(["trace", str(home / "gift" / "recipe.toml")])
    assert len(asked) == 3


def test_trust_in_a_folder_sends_nothing(home, ssh, user):
    TrustStore(user.trust).trust_folder(home)
    assert run_command(["trace", gift(home), "--json"]) == 5 and not ssh.is_called


def test_a_name_with_a_line_break_forges_no_line_of_the_question(home, ssh, capsys):
    (home / "gift" / "a\nsha256:send:x:y").write_text("")
    assert run_command(["trace", gift(home), "--json"]) == 5
    assert len(told(capsys)["error"]["details"].splitlines()) == 4


def test_a_file_that_is_swapped_after_it_was_looked_at_is_not_sent(home, ssh, monkeypatch):
    from ace_studio.jobs.hosts import link

    found = link.bundle_of

    def and_swap(*words):
        made = found(*words)
        (home / "gift" / "data.bin").unlink()
        os.link(home / "keys" / "plain", home / "gift" / "data.bin")
        return made

    monkeypatch.setattr(link, "bundle_of", and_swap)
    run_command(["trace", gift(home), "--json", "--host", HOST])
    assert ssh.is_called and CANARY not in ssh.received


def test_the_engine_of_a_recipe_is_not_connected_to_by_any_other_command(home, ssh):
    path = gift(home)
    for words in (["plan", path], ["sensitivity", path], ["values", path, "--op", "conv"], ["fix", path],
                  ["prune", path, "--preview"], ["run", path, "--out", str(home / "out")]):  # fmt: skip
        assert run_command([*words, "--json", "--trust"]) == 5
    assert not ssh.is_called


def result_gift(home: Path, folder: Path) -> Path:
    """A folder that a stranger's run wrote; its result says that the recipe belongs to another folder."""
    card = Advice(
        kind="precision-bf16", title="Try bf16", why="", estimate="", quantity=AdviceQuantity.LATENCY,
        estimated_gain=2.0, change={"plan": {"default": "bf16"}},
    )  # fmt: skip
    recipe = Path(gift(home)).read_text()
    made = replace(result(), advice=(card,), recipe=recipe, folder=str(folder))
    (home / "gift" / "result.json").write_bytes(encode_result(made))
    return home / "gift"


@pytest.mark.parametrize("words", [["advise", "GIFT", "--apply", "1"], ["run", "--repeat", "GIFT"]])
@pytest.mark.parametrize("more", [[], ["--trust"], ["--host", HOST]], ids=["", "--trust", "--host"])
def test_the_folder_that_a_strangers_result_names_is_not_followed(words, more, home, ssh, capsys):
    place = result_gift(home, home / "notes")
    words = [str(place) if one == "GIFT" else one for one in words]
    assert run_command([*words, "--out", str(home / "new"), "--json", *more]) == 5 and not ssh.is_called
    error = told(capsys)["error"]
    assert "No run of yours wrote this result" in error["what"] and str(home / "notes") in error["why"]


@pytest.mark.parametrize("name", ["../notes", "link"])
def test_a_folder_below_the_result_is_followed_and_none_that_only_looks_so(name, home, ssh, capsys):
    (home / "gift" / "link").symlink_to(home / "notes")
    place = result_gift(home, home / "gift" / name)
    assert run_command(["advise", str(place), "--apply", "1", "--out", str(home / "new"), "--host", HOST]) == 5
    assert not ssh.is_called
    (place / "net").mkdir()
    place = result_gift(home, place / "net")
    run_command(["advise", str(place), "--apply", "1", "--out", str(home / "new"), "--host", HOST])
    assert ssh.is_called and CANARY not in ssh.received


def test_a_card_of_advice_that_names_a_host_is_no_word_of_the_user(home, ssh):
    place = result_gift(home, home / "gift")
    (place / "result.json").write_text((place / "result.json").read_text().replace("bf16", "int8-static"))
    own = home / "own.toml"
    own.write_text('format = 1\n[model]\nsource = "timm:resnet18"\n')
    text = json.loads((place / "result.json").read_text())
    text["advice"][0]["change"] = {"engine": {"host": HOST, "python": sys.executable}}
    (place / "result.json").write_text(json.dumps(text))
    words = ["advise", str(place), "--apply", "1", "--recipe", str(own), "--out", str(home / "new"), "--trust"]
    assert run_command(words) != 0 and not ssh.is_called


def test_the_list_is_confirmed_ahead_by_a_person_for_commands_without_a_terminal(home, ssh, monkeypatch, capsys):
    path = gift(home)
    assert run_command(["trust", "--add", path]) == 5 and not ssh.is_called
    asked = answering(monkeypatch, "yes")
    assert run_command(["trust", "--add", path]) == 0
    assert len(asked) == 1 and HOST in asked[0] and not ssh.is_called
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    capsys.readouterr()
    assert run_command(["trust", "--list"]) == 0 and f"send:{HOST}:" in capsys.readouterr().out
    run_command(["trace", path, "--json"])
    assert b"the stranger's data" in ssh.received
    assert run_command(["trust", "--revoke", str(home / "gift")]) == 0
    received = ssh.received
    assert run_command(["trace", path, "--json"]) == 5 and ssh.received == received


@pytest.mark.parametrize("name", ["link/diary.txt", "/HOME/.bashrc"])
def test_a_host_that_says_that_results_belong_elsewhere_writes_nothing_there(name, home, ssh, monkeypatch, capsys):
    (home / ".bashrc").write_text("mine")
    (home / "out").mkdir()
    (home / "out" / "link").symlink_to(home / "notes")
    said = BundledFile(path=name.replace("/HOME", str(home)), sha256=sha256(b"theirs").hexdigest(), size=6)

    def lie(self, fetch):
        listed = frames.Written(number=fetch.number, files=(said,))
        return frames.Piece(number=fetch.number, data=b"theirs") if fetch.path else listed

    monkeypatch.setattr(HostLink, "_request", lie)
    words = ["run", gift(home), "--out", str(home / "out"), "--json", "--host", HOST]
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert run_command(words) == 6 and "outside of the output folder" in told(capsys)["error"]["why"]
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert {path: content for path, content in after.items() if path != home / "out" / "result.json"} == before


def test_a_secret_cannot_be_confirmed_ahead(home, ssh, monkeypatch, capsys):
    answering(monkeypatch, "yes")
    assert run_command(["trust", "--add", gift(home, 'weights = "../.ssh/id_rsa"')]) == 5
    assert "keys or passwords" in capsys.readouterr().err and not ssh.is_called
