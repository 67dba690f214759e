"""The steps that build installers: the same bytes each time, nothing missing, nothing of the user's machine."""

import json
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ace_studio
from tests.jobs.packs import make_pack


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "program"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "start").write_text("#!/bin/sh\n")
    (made / "bin" / "start").chmod(0o700)
    (made / "notes.txt").write_text("read me")
    return made


def test_an_archive_has_the_same_bytes_whoever_packs_it_and_when(scripts, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    steps = scripts("steps")
    steps.write_archive(folder, tmp_path / "first.tar.gz")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    (folder / "notes.txt").chmod(0o600)
    steps.write_archive(folder, tmp_path / "second.tar.gz")
    assert (tmp_path / "first.tar.gz").read_bytes() == (tmp_path / "second.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "first.tar.gz") as archive:
        modes = {member.name: (member.mode, member.mtime, member.uname) for member in archive}
    assert modes["program/bin/start"] == (0o755, 1700000000, "")
    assert modes["program/notes.txt"][0] == 0o644


def test_a_checksum_is_read_by_sha256sum(scripts, folder):
    scripts("steps").write_checksum(folder / "notes.txt")
    done = subprocess.run(["sha256sum", "--check", "notes.txt.sha256"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(("name", "words"), [("", "lacks ace_studio/jobs/boot.py"), ("tests/test_x.py", "holds tests")])
def test_a_wheel_with_a_missing_file_or_with_tests_is_refused(scripts, tmp_path, name, words):
    wheel = scripts("wheel")
    path = tmp_path / "ace_studio.whl"
    names = [one for one in wheel.IN_EVERY_WHEEL if name or "boot" not in one]
    with zipfile.ZipFile(path, "w") as archive:
        for one in (*names, *([name] if name else ())):
            archive.writestr(one, "")
    with pytest.raises(scripts("steps").BuildError, match=words):
        wheel.check_contents(path)


def test_what_is_missing_is_said_with_a_remedy_and_the_exit_code_is_6(scripts, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert scripts("make").main(["deb", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]) == 6
    printed = capsys.readouterr()
    assert "dpkg-deb is not installed" in printed.err and "remedy: apt-get install dpkg" in printed.err
    assert printed.out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")
def test_a_pack_is_put_beside_the_portable_program_and_a_hostile_one_is_not(scripts, folder, tmp_path):
    portable = scripts("portable")
    scripts("steps").write_archive(folder, tmp_path / "own.tar.gz")
    portable.put_beside(tmp_path / "own.tar.gz", tmp_path / "engines")
    assert os.access(tmp_path / "engines" / "program" / "bin" / "start", os.X_OK)
    hostile = make_pack(tmp_path, members={"../escaped": b"x"})
    with pytest.raises(scripts("steps").BuildError, match="leads out of the folder"):
        portable.put_beside(hostile, tmp_path / "others")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="engine packs are built on Linux")
def test_the_python_of_a_pack_sees_its_own_packages_only(scripts, tmp_path):
    pack = scripts("pack")
    pack.copy_python(tmp_path / "pack")
    own = next((tmp_path / "pack" / "lib").glob("python3.*")) / "site-packages"
    (own / "engine_part.py").write_text("")
    code = "import json, site, sys, engine_part; print(json.dumps([site.ENABLE_USER_SITE, sys.prefix, sys.path]))"
    user = tmp_path / "home" / ".local" / "lib" / own.parent.name / "site-packages"
    user.mkdir(parents=True)
    printed = subprocess.run(
        [tmp_path / "pack" / "bin" / "python3", "-c", code],
        env={"HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    uses_user_site, prefix, places = json.loads(printed)
    assert uses_user_site is False
    assert prefix == str(tmp_path / "pack")
    assert all(place == "" or place.startswith(prefix) for place in places)
    assert not list((own.parent / "lib-dynload").glob("readline*"))


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND MIT", True),
        ("(LGPL-3.0-only OR GPL-2.0-only)", True),
        ("Apache-2.0 AND Apache-2.0 WITH LLVM-exception", True),
        ("License :: OSI Approved :: BSD License", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND GPL-2.0-only", False),
        ("AGPL-3.0-only OR LicenseRef-Proprietary", False),
    ],
)
def test_a_licence_is_allowed_if_one_of_its_choices_is(scripts, expression, is_allowed):
    assert scripts("contents").is_allowed(expression) == is_allowed


def test_what_names_no_licence_or_a_forbidden_one_is_not_shipped(scripts):
    components = [
        {"name": "good", "licenses": [{"license": {"id": "MIT"}}, {"license": {"name": "License :: DFSG approved"}}]},
        {"name": "silent", "version": "1.0", "licenses": []},
        {"name": "libreadline8", "licenses": [{"expression": "GPL-3.0-or-later"}]},
    ]
    said = ["silent 1.0 names no licence", "libreadline8 is under GPL-3.0-or-later"]
    assert scripts("contents").licence_problems(components) == said


@pytest.mark.parametrize(("kind", "cuda"), [("cuda", None), ("cpu", "13.0"), ("small", "12.8")])
def test_a_pack_whose_torch_is_of_another_build_than_its_kind_is_not_made(scripts, tmp_path, kind, cuda):
    pack, build_error = scripts("pack"), scripts("steps").BuildError
    python = tmp_path / "pack" / "bin" / "python3"
    python.parent.mkdir(parents=True)

    def answer(cuda: str | None) -> None:
        said = json.dumps({"packages": {"torch": "2.13.0"}, "cuda": cuda})
        python.write_text(f"#!/bin/sh\necho '{said}'\n")
        python.chmod(0o755)

    answer(cuda)
    with pytest.raises(build_error, match=f"a pack {kind} would hold the .*build") as caught:
        pack.check_pack(tmp_path / "pack", kind)
    assert "pip's settings" in caught.value.remedy
    answer("13.0" if cuda is None else None)
    assert pack.check_pack(tmp_path / "pack", kind) == {"torch": "2.13.0"}


def test_every_component_has_the_text_of_its_licence_in_a_file(scripts, tmp_path):
    contents = scripts("contents")
    qt = {"name": "Qt", "licenses": [{"expression": "LGPL-3.0-only OR GPL-2.0-only"}]}
    components = [{"name": "msgspec"}, {"name": "no-such-package"}, qt]
    contents._write_texts(Path(sys.executable), tmp_path / "licences", components)
    python = contents._python(Path(sys.executable), tmp_path / "licences")
    texts = {path.name: path.read_text("utf-8") for path in (tmp_path / "licences").iterdir()}
    assert set(texts) == {"msgspec.txt", "no-such-package.txt", "Qt.txt", "Python.txt"}
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in texts["Qt.txt"]
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 3" in texts["Qt.txt"]
    assert "Redistribution and use in source and binary forms" in texts["msgspec.txt"]
    assert "brings no text" in texts["no-such-package.txt"]
    assert "Python Software Foundation" in texts["Python.txt"]
    assert python["version"].startswith("3.")


def test_the_copyright_of_the_debian_package_names_everything_in_it(scripts, tmp_path):
    components = [
        {"name": "ace-studio", "version": "0.2.0", "licenses": [{"license": {"id": "Apache-2.0"}}]},
        {"name": "zlib1g", "version": "1.2", "licenses": [{"expression": "Zlib"}]},
        {"name": "Qt", "version": "6", "licenses": [{"license": {"name": "LGPL"}}, {"license": {"id": "MIT"}}]},
    ]
    (tmp_path / "contents.cdx.json").write_text(json.dumps({"components": components}))
    text = scripts("deb").copyright_text(tmp_path)
    assert "\n  Qt 6: LGPL AND MIT\n  zlib1g 1.2: Zlib\n" in text
    assert "/opt/ace-studio/licences" in text and "TERMS AND CONDITIONS" in text


@pytest.mark.skipif(sys.platform != "linux", reason="the scripts of a Debian package")
def test_purging_removes_the_folders_of_the_one_who_purges_and_removal_none(scripts, tmp_path):
    home, tools = tmp_path / "home", tmp_path / "tools"
    folders = [home / place / "ace-studio" for place in (".config", ".local/share", ".local/state", ".cache")]
    for folder in folders:
        (folder / "a folder").mkdir(parents=True)
    (home / ".config" / "other").mkdir()
    tools.mkdir()
    (tools / "getent").write_text(f'#!/bin/sh\n[ "$2" = 1234 ] && echo "ada:x:1234:1234:Ada:{home}:/bin/sh"\n')
    (tools / "runuser").write_text('#!/bin/sh\n[ "$2" = ada ] && shift 3 && exec "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    script = tmp_path / "postrm"
    script.write_text(scripts("deb").SCRIPTS["postrm"])

    def call(word: str, user: str) -> None:
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "SUDO_UID": user}
        subprocess.run(["sh", script, word], env=environment, check=True)

    for word, user in (("remove", "1234"), ("upgrade", "1234"), ("purge", "77")):
        call(word, user)
        assert all(folder.is_dir() for folder in folders)
    call("purge", "1234")
    assert not any(folder.exists() for folder in folders)
    assert (home / ".config" / "other").is_dir()


def test_the_version_in_the_package_is_that_of_the_installers(scripts):
    assert ace_studio.__version__ == scripts("steps").version()


def test_the_windows_uninstaller_knows_everything_that_is_beside_the_program(scripts):
    windows, contents = scripts("windows"), scripts("contents")
    removed = windows.SCRIPT.read_text().partition("!macro REMOVE_PROGRAM")[2].partition("!macroend")[0]
    assert 'RMDir /r "$INSTDIR\\program"' in removed
    assert f'RMDir /r "$INSTDIR\\{contents.LICENCES}"' in removed
    assert f'Delete "$INSTDIR\\{contents.DOCUMENT}"' in removed


@pytest.mark.skipif(shutil.which("makensis") is None, reason="NSIS is not here")
def test_the_windows_installer_is_made_from_a_folder_with_spaces_and_asks_for_no_rights(scripts, tmp_path):
    program = tmp_path / "a program"
    (program / "program").mkdir(parents=True)
    for name in ("ace-studio.exe", "ace-studio-window.exe", "program/some file.pyd"):
        (program / name).write_bytes(b"x" * 2000)
    installer = scripts("windows").pack_exe(program, tmp_path)
    content = installer.read_bytes()
    assert content[:2] == b"MZ"
    assert b'requestedExecutionLevel level="asInvoker"' in content


@pytest.mark.skipif(sys.platform != "linux", reason="on the other systems they are built")
@pytest.mark.parametrize(("kind", "system"), [("exe", "Windows"), ("dmg", "macOS")])
def test_what_cannot_be_built_on_linux_says_where(scripts, tmp_path, capsys, kind, system):
    assert scripts("make").main([kind, "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]) == 6
    assert f"run this on {system}" in capsys.readouterr().err


def test_the_macos_entitlements_are_a_property_list(scripts):
    rights = plistlib.loads(scripts("macos").ENTITLEMENTS.read_bytes())
    assert all(name.startswith("com.apple.security.cs.") and value is True for name, value in rights.items())


def test_the_workflow_builds_formats_that_exist_and_runs_commands_that_exist(scripts, root):
    text = (root / ".github" / "workflows" / "installers.yml").read_text()
    formats = set(re.findall(r"packaging.ace installer (\w+)", text))
    assert formats == {"deb", "tar", "exe", "dmg", "pack", "trial"}
    assert formats - {"trial"} < set(scripts("make").BUILDERS)


def test_records_of_frozen_packages_do_not_depend_on_the_folder_of_the_build(scripts, tmp_path):
    record = tmp_path / "numpy-2.4.dist-info" / "RECORD"
    record.parent.mkdir()
    lines = (
        "../../../bin/f2py,sha256=tx1E,233",
        "numpy-2.4.dist-info/direct_url.json,sha256=bb,2",
        "numpy/__init__.py,sha256=aa,1",
    )
    record.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    scripts("freeze").forget_places(tmp_path)
    assert record.read_text("utf-8") == "numpy/__init__.py,sha256=aa,1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is started on no screen")
def test_a_frozen_program_whose_window_ends_at_once_is_not_packed(scripts, tmp_path, monkeypatch):
    freeze = scripts("freeze")
    program = tmp_path / "ace-studio"

    def window_does(words: str) -> None:
        program.write_text(f'#!/bin/sh\n[ "$1" = --help ] && exit 0\n{words}\n')
        program.chmod(0o755)

    window_does('echo "$QT_QPA_PLATFORM $HOME $ACE_STUDIO_PYTHON"; exit 1')
    with pytest.raises(scripts("steps").BuildError, match="the window ended at once:\noffscreen /") as caught:
        freeze.check_start(program)
    assert str(Path.home()) not in str(caught.value) and "/nowhere/python" in str(caught.value)
    monkeypatch.setattr(freeze, "WINDOW_S", 0.5)
    window_does("exec sleep 60")
    freeze.check_start(program)
