"""The settings of the window."""

from pathlib import Path

import msgspec
import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.recipe import LimitsChoice
from ace_studio.session.kept.settings import INTERPRETERS_KEY, SETTINGS, Settings


def test_every_default_fits_its_own_row() -> None:
    assert [row.key for row in SETTINGS.values() if row.fault(row.default)] == []


def test_settings_survive_and_unknown_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.json"
    Settings(path).set("theme", "dark")
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "future": 1}))
    Settings(path).set("scale_percent", 150)
    later = Settings(path)
    assert (later.get("theme"), later.get("scale_percent")) == ("dark", 150)
    assert msgspec.json.decode(path.read_bytes())["future"] == 1


def test_a_settings_file_that_the_user_keeps_elsewhere_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "settings.json").symlink_to(tmp_path / "mine" / "settings.json")
    Settings(tmp_path / "settings.json").set("theme", "dark")
    assert (tmp_path / "settings.json").is_symlink()
    assert Settings(tmp_path / "mine" / "settings.json").get("theme") == "dark"


def test_two_windows_keep_what_the_other_changed(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    one, other = Settings(path), Settings(path)
    one.set("theme", "dark")
    one.add_recent("/a.py")
    one.choose_interpreter("/a", "/a/python")
    other.set("scale_percent", 150)
    other.add_recent("/b.py")
    other.choose_interpreter("/b", "/b/python")
    one.set("log_lines", 500)
    later = Settings(path)
    assert (later.get("theme"), later.get("scale_percent"), later.get("log_lines")) == ("dark", 150, 500)
    assert later.recent_files == ("/b.py", "/a.py")
    assert (later.interpreter("/a"), later.interpreter("/b")) == ("/a/python", "/b/python")


def test_a_damaged_file_does_not_become_the_generation_before(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    window = Settings(path)
    window.set("theme", "dark")
    window.set("log_lines", 500)
    path.write_text("{")
    window.set("scale_percent", 150)
    assert Settings(path).get("theme") == "dark"
    path.write_text("{")
    assert Settings(path).get("theme") == "dark"


@pytest.mark.parametrize(
    ("key", "value"), [("theme", "pink"), ("scale_percent", 1000), ("scale_percent", "big"), ("reopen_last", 1)]
)
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, key: str, value: str | int) -> None:
    chosen = Settings(tmp_path / "s.json")
    with pytest.raises(AceError):
        chosen.set(key, value)
    assert chosen.get(key) == SETTINGS[key].default


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"theme": 3, "recent_files": 7}'])
def test_a_damaged_settings_file_counts_as_defaults(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    assert Settings(path).get("theme") == "system"
    assert Settings(path).recent_files == ()


def test_a_damaged_settings_file_is_read_from_the_generation_before(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    Settings(path).set("theme", "dark")
    Settings(path).set("scale_percent", 150)
    path.write_bytes(path.read_bytes()[:20])
    kept = Settings(path)
    assert (kept.get("theme"), kept.get("scale_percent")) == ("dark", 100)
    path.unlink()
    assert Settings(path).get("theme") == "system"  # removed on purpose


def test_recent_files_are_newest_first_each_once_and_bounded(tmp_path: Path) -> None:
    chosen = Settings(tmp_path / "s.json")
    for number in [*range(20), 15]:
        chosen.add_recent(f"/m/{number}.py")
    assert chosen.recent_files[:3] == ("/m/15.py", "/m/19.py", "/m/18.py")
    assert len(chosen.recent_files) == len(set(chosen.recent_files)) == 12
    chosen.forget_recent("/m/15.py")
    assert Settings(tmp_path / "s.json").recent_files[0] == "/m/19.py"


def test_settings_that_cannot_be_saved_still_hold_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    chosen = Settings(tmp_path / "file" / "s.json")
    heard: list[str] = []
    chosen.subscribe(heard.append)
    with pytest.raises(AceError):
        chosen.set("theme", "dark")
    assert chosen.get("theme") == "dark" and heard == ["theme"]


def test_the_limits_of_jobs_are_settings(tmp_path: Path) -> None:
    chosen = Settings(tmp_path / "s.json")
    assert chosen.limits == LimitsChoice()
    chosen.set("memory_limit_mb", 900)
    chosen.set("step_limit_s", 60.0)
    assert chosen.limits == LimitsChoice(memory_mb=900.0, step_s=60.0)


@pytest.mark.parametrize(
    ("stored", "contain"), [(True, True), (False, None), ("always", True), ("never", False), ("auto", None)]
)
def test_containment_that_was_stored_as_a_switch_still_opens(
    tmp_path: Path, stored: bool | str, contain: bool | None
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(msgspec.json.encode({"contain": stored}))
    assert Settings(path).contain is contain


def test_a_python_is_chosen_for_a_folder_and_what_is_below_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    chosen, heard = Settings(path), list[str]()
    chosen.subscribe(heard.append)
    chosen.choose_interpreter("", "/all/python")
    chosen.choose_interpreter("/work/net", "/net/python")
    assert heard == ["interpreter", INTERPRETERS_KEY]
    later = Settings(path)
    assert later.interpreter("/work/net/../net/configs") == "/net/python"
    assert later.interpreter("/work/network") == later.interpreter() == "/all/python"
    assert later.project_interpreter("/work/network") == later.project_interpreter("") == ""
    later.choose_interpreter("/work/net", "")
    assert later.interpreter("/work/net") == "/all/python"
