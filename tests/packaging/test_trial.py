"""The trial of an installer: what it compares and writes down. The trial itself needs root and many minutes."""

import re
import shutil
import subprocess

import pytest


@pytest.fixture
def system(scripts, tmp_path, monkeypatch):
    """A clean root that nobody made."""
    clean_root = scripts("clean_root")
    monkeypatch.setattr(clean_root.os, "geteuid", lambda: 0)
    monkeypatch.setattr(clean_root.shutil, "which", lambda name: name)
    (tmp_path / "root").mkdir()
    return clean_root.CleanRoot(tmp_path / "root", tmp_path / "trial.log")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this is no Debian")
@pytest.mark.parametrize(("old", "becomes"), [("0.1.9", "0.1.9"), ("0.2.0", "0.2.0~before"), ("0.3.0", "0.2.0~before")])
def test_the_package_that_is_upgraded_has_a_lower_number_and_a_file_that_must_go(scripts, tmp_path, old, becomes):
    trial = scripts("trial")

    def package(version: str):
        tree = tmp_path / version
        (tree / "opt" / "ace-studio" / "program").mkdir(parents=True)
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN" / "control").write_text(
            f"Package: ace-studio\nVersion: {version}\nArchitecture: all\nMaintainer: ada\nDescription: a trial\n"
        )
        made = tmp_path / f"{version}.deb"
        subprocess.run(["dpkg-deb", "--build", tree, made], check=True, capture_output=True)
        return made

    new = package("0.2.0")
    before = trial.version_before(new, new if old == "0.2.0" else package(old), tmp_path)
    assert trial._field(before, "Version") == becomes
    listed = subprocess.run(["dpkg-deb", "--contents", before], check=True, capture_output=True, text=True).stdout
    assert f"./{trial.ONLY_BEFORE}" in listed
    assert subprocess.run(["dpkg", "--compare-versions", becomes, "lt", "0.2.0"], check=False).returncode == 0


def test_what_is_left_is_found_in_every_folder_but_those_that_are_not_of_the_disk(system):
    for path in ("opt/ace-studio/a", "var/lib/ace-studio.list", "tmp/ace-studio.deb", "proc/ace-studio", "opt/other"):
        (system.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (system.folder / path).write_text("")
    assert system.named("ace-studio") == {"opt/ace-studio", "opt/ace-studio/a", "var/lib/ace-studio.list"}


def test_the_summary_has_every_figure_and_no_path_of_this_machine(scripts, system, tmp_path):
    system.step("the window", lambda: None)
    system.fact("package", "70 MB")
    text = system.summary("ace-studio.deb in a clean bookworm")
    assert text.startswith("ace-studio.deb in a clean bookworm, 20")
    assert [line.split()[-2:] for line in text.splitlines()[1:]] == [["0.0", "s"], ["70", "MB"]]
    assert str(tmp_path) not in text


def test_a_step_that_fails_is_named_with_the_log(scripts, system, tmp_path):
    clean_root = scripts("clean_root")
    with pytest.raises(scripts("steps").BuildError, match="removal: it is still there") as caught:
        system.step("removal", lambda: clean_root.expect(False, "it is still there"))
    assert str(tmp_path / "trial.log") in caught.value.remedy
    assert "failed: it is still there" in (tmp_path / "trial.log").read_text()


def test_commands_in_the_root_have_no_network_and_the_environment_of_their_user(system):
    words = [str(word) for word in system.command("ace-studio", user="ada", variables=("DISPLAY=:1",))]
    assert words[:3] == ["unshare", "--net", "--"]
    assert words[3:9] == ["chroot", str(system.folder), "runuser", "-u", "ada", "--"]
    assert words[9:11] == ["env", "-i"] and "HOME=/home/ada" in words and words[-2:] == ["DISPLAY=:1", "ace-studio"]
    assert "unshare" not in system.command("apt-get", network=True)


def test_a_trial_without_anything_to_try_is_a_wrong_call(scripts, tmp_path, capsys):
    with pytest.raises(SystemExit):
        scripts("make").main(["trial", "--out", str(tmp_path), "--tar", "x.tar.gz"])
    assert "--with-pack" in capsys.readouterr().err


def test_the_figures_of_the_help_are_those_of_the_last_trial(root):
    log = (root / "packaging" / "installers" / "trial.log").read_text(encoding="utf-8")
    deb, _, _ = log.partition(".tar.gz in a clean")

    def figure(name: str) -> str:
        (line,) = [line for line in deb.splitlines() if re.match(rf"{re.escape(name)}  +", line)]
        return line.removeprefix(name).strip()

    page = (root / "resources/help/install.md").read_text(encoding="utf-8")
    window, again = (figure(f"the window is shown, {which} start") for which in ("first", "second"))
    packed, on_disk = re.search(r"xz.*?(\d+ MB)", figure("package"))[1], figure("package, installed")
    assert f"| {packed} | {on_disk} | window at the first start {window}, then {again} |" in page
    packed, on_disk = figure("engine pack"), figure("engine pack, installed")
    installed, answer = figure("installing the engine pack"), figure("the engine, first start (doctor)")
    assert f"| {packed} | {on_disk} | installed in {installed}, first answer after {answer} |" in page
