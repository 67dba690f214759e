"""The shell part of the starter: finds an interpreter that works, whatever the environment, and passes words on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows starts with ace.cmd")

BOOTSTRAP = """\
import json, os, sys
print(json.dumps({"python": sys.executable, "words": sys.argv[1:], "home": os.environ.get("HOME"),
                  "path": os.environ.get("PATH"), "pythonhome": os.environ.get("PYTHONHOME"),
                  "sees_pythonpath": any("poison" in entry for entry in sys.path)}))
"""


@pytest.fixture
def checkout(tmp_path, root) -> Path:
    """A checkout with the real script and a second half that only says how it was called. The folder has a space."""
    folder = tmp_path / "my checkout"
    (folder / "packaging").mkdir(parents=True)
    shutil.copy(root / "packaging" / "ace", folder / "packaging" / "ace")
    (folder / "packaging" / "bootstrap.py").write_text(BOOTSTRAP)
    return folder


def start(script: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(script), *words], env=env or {}, capture_output=True, text=True, timeout=60, check=False
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def make_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def real_python(tmp_path) -> dict[str, str]:
    """An environment whose only python3 is the one that runs the tests."""
    folder = tmp_path / "good"
    make_program(folder / "python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}


def test_an_empty_environment_gets_a_home_and_a_path(checkout, tmp_path):
    found = answer(start(checkout / "packaging" / "ace", env={"ACE_PYTHON": sys.executable}))
    assert Path(str(found["home"])).is_dir()
    assert "/usr/bin" in str(found["path"])


def test_words_reach_the_program_unchanged(checkout, real_python):
    words = ["run", "a b.toml", "--input", "x=1x3", "", "it's $HOME"]
    assert answer(start(checkout / "packaging" / "ace", *words, env=real_python))["words"] == words


def test_a_link_to_the_script_starts_the_checkout_it_points_to(checkout, real_python, tmp_path):
    link = tmp_path / "bin" / "ace"
    link.parent.mkdir()
    link.symlink_to(checkout / "packaging" / "ace")
    assert answer(start(link, "doctor", env=real_python))["words"] == ["doctor"]


def test_an_interpreter_that_does_not_start_is_passed_over(checkout, real_python, tmp_path):
    shims = tmp_path / "shims"
    make_program(shims / "python3", "#!/bin/sh\necho 'pyenv: python3: command not found' >&2\nexit 127\n")
    environment = {**real_python, "PATH": f"{shims}:{real_python['PATH']}"}
    make_program(tmp_path / "good" / "python3.13", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert answer(start(checkout / "packaging" / "ace", env=environment))["python"] == sys.executable


def test_an_interpreter_that_is_too_old_is_passed_over(checkout, real_python, tmp_path):
    old = tmp_path / "old"
    # Answers every question about its version with no, and would say so if the set-up ran in it.
    make_program(old / "python3", '#!/bin/sh\ncase "$*" in *version_info*) exit 1 ;; esac\necho TOO OLD\n')
    environment = {**real_python, "PATH": f"{old}:{real_python['PATH']}"}
    make_program(tmp_path / "good" / "python3.12", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert answer(start(checkout / "packaging" / "ace", env=environment))["python"] == sys.executable


def test_a_named_interpreter_that_does_not_fit_is_an_error_and_not_replaced(checkout, real_python):
    done = start(checkout / "packaging" / "ace", env={**real_python, "ACE_PYTHON": "/nowhere/python3"})
    assert done.returncode == 6
    assert "ACE_PYTHON: /nowhere/python3 does not start" in done.stderr


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.7.18", "is Python 2.7.18, and ACE Studio needs 3.11 to 3.14"),
        ("3.15.0", "is Python 3.15.0, and ACE Studio needs 3.11 to 3.14"),
        ("3.13.0", "is Python 3.13.0 without venv, ensurepip or ssl"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_python_that_does_not_fit_is_told_with_its_version(checkout, tmp_path, version, words, is_named):
    number = tuple(map(int, version.split(".")))
    code = 'code=$3; [ "$1" = -I ] && exit 1; exec {} -c "import sys; sys.version_info = {}; $code"'
    old = make_program(tmp_path / "old" / "python3", "#!/bin/sh\n" + code.format(sys.executable, number))
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("dirname", "id", "readlink", "head"):
        (tools / tool).symlink_to(shutil.which(tool))
    script = checkout / "packaging" / "ace"
    script.write_text(script.read_text().replace(" /usr/bin/python3", " /no/python3").replace("/usr/local", "/no"))
    environment = {"PATH": f"{old.parent}:{tools}", "ACE_NO_APT": "1", "HOME": str(tmp_path)}
    done = start(script, env=environment | ({"ACE_PYTHON": str(old)} if is_named else {}))
    assert done.returncode == 6
    assert words in done.stderr


def test_pythonhome_and_pythonpath_of_another_python_do_no_harm(checkout, real_python):
    environment = {**real_python, "PYTHONHOME": "/nowhere", "PYTHONPATH": "/poison"}
    found = answer(start(checkout / "packaging" / "ace", env=environment))
    assert found["pythonhome"] is None
    assert found["sees_pythonpath"] is False


def test_a_venv_that_was_set_up_before_is_the_interpreter(checkout, real_python):
    inside = make_program(checkout / ".venv" / "bin" / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (checkout / ".venv" / "ace-stamp.json").write_text("{}")
    inside.write_text(f'#!/bin/sh\nFROM_VENV=1 exec "{sys.executable}" "$@"\n')
    (checkout / "packaging" / "bootstrap.py").write_text(
        "import json, os; print(json.dumps(os.environ.get('FROM_VENV')))"
    )
    done = start(checkout / "packaging" / "ace", env=real_python)
    assert json.loads(done.stdout) == "1"
    other = make_program(checkout / "other", "#!/bin/sh\necho '(3, 12)'\n")
    for named, is_told in ((sys.executable, False), (str(other), True)):
        done = start(checkout / "packaging" / "ace", env={**real_python, "ACE_PYTHON": named})
        assert json.loads(done.stdout) == "1"
        assert ("of another Python than ACE_PYTHON" in done.stderr) == is_told


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_the_script_is_plain_posix_shell(shell, root):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not here")
    command = [program, "sh"] if shell == "busybox" else [program]
    done = subprocess.run(
        [*command, "-n", str(root / "packaging" / "ace")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_block_of_the_script_for_windows_holds_what_a_user_may_write(root):
    lines = (root / "packaging" / "ace.cmd").read_text().splitlines()
    # A parenthesis in a path or a word would end the block.
    assert not [line for line in lines if line.endswith("(") or line.strip() == ")"]


def test_the_script_is_executable_in_the_checkout(root):
    assert (root / "packaging" / "ace").stat().st_mode & 0o111
    assert (root / ".ci" / "run").stat().st_mode & 0o111
