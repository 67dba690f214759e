"""The program that is sent first: it takes the source once, and says what it cannot do."""

import json
import subprocess
import sys
from hashlib import sha256

import pytest

from ace_studio.jobs.hosts.landing import MARK
from ace_studio.jobs.hosts.transport import LANDING_FILE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the other machine has sockets that are files")


def land(home, sent: bytes, **asked) -> subprocess.CompletedProcess:
    asked = {"session": "s", "is_resumed": True, **asked}
    return subprocess.run(
        [sys.executable, "-S", str(LANDING_FILE)],
        input=json.dumps(asked).encode() + b"\n" + sent,
        capture_output=True,
        check=False,
        env={"HOME": str(home)},
    )


def test_a_source_that_was_damaged_is_refused_and_leaves_nothing(tmp_path):
    done = land(tmp_path, b"5\nwrong", sha256=sha256(b"right").hexdigest())
    assert done.returncode == 5 and b"did not arrive" in done.stderr
    assert not list(tmp_path.rglob("source"))


def test_a_source_that_is_there_is_not_asked_for_and_a_keeper_that_is_gone_is_not_started(tmp_path):
    (tmp_path / ".cache/ace-studio/engine-here/source/abc").mkdir(parents=True)
    done = land(tmp_path, b"", sha256="abc")
    assert done.stdout.decode().split() == [f"{MARK}have", f"{MARK}gone"] and done.returncode == 0


def test_a_keeper_that_cannot_start_says_why(tmp_path):
    package = tmp_path / ".cache/ace-studio/engine-here/source/abc/ace_studio"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    done = land(tmp_path, b"", sha256="abc", is_resumed=False)
    assert done.returncode == 4 and b"ModuleNotFoundError" in done.stderr


def test_a_home_that_cannot_be_written_to_is_told_by_the_system(tmp_path):
    (tmp_path / "file").touch()
    done = land(tmp_path / "file", b"", sha256="abc")
    assert done.returncode == 6 and b"NotADirectoryError" in done.stderr
