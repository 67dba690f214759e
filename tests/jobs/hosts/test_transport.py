"""A connection that does not come about says why."""

import io
import subprocess
import sys
import tarfile
from hashlib import sha256

import pytest

from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.jobs.hosts.transport import HostConnection, engine_source
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import EngineChoice
from tests.jobs.hosts.ssh_host import needs_ssh

pytestmark = needs_ssh


@pytest.mark.parametrize(
    ("said", "exit_code", "code", "what"),
    [
        ("ModuleNotFoundError: No module named 'msgspec'", 4, ErrorCode.NOT_INSTALLED, "has no msgspec"),
        ("ACE Studio needs Python 3.11 or newer; this is 3.8", 3, ErrorCode.NOT_INSTALLED, "is too old"),
        ("OSError: [Errno 28] No space left on device", 6, ErrorCode.SYSTEM, "The disk is full on user@box"),
        ("Permission denied (publickey).", 255, ErrorCode.HOST, "refused the key"),
    ],
)
def test_what_was_said_becomes_a_problem(tmp_path, monkeypatch, said, exit_code, code, what):
    path = tmp_path / "ssh"
    path.write_text(f'#!/bin/sh\necho a shell greets\necho "{said}" >&2\nexit {exit_code}\n')
    path.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(path))
    with pytest.raises(AceError) as caught:
        HostConnection(EngineChoice(host="user@box"), "s", is_resumed=False)
    problem = caught.value.problem
    assert problem.code is code and what in problem.what and problem.remedy


def test_the_archive_is_the_same_for_the_same_content_and_holds_no_window():
    first = engine_source()
    engine_source.cache_clear()
    assert engine_source() == first and sha256(first.archive).hexdigest() == first.sha256
    with tarfile.open(fileobj=io.BytesIO(first.archive)) as archive:
        names = archive.getnames()
    assert {"ace_studio/__init__.py", "ace_studio/jobs/boot.py", "ace_studio/resources/report.css"} <= set(names)
    assert not [name for name in names if name.startswith(("ace_studio/gui", "ace_studio/cli", "ace_studio/session"))]


def test_the_keeper_and_the_handlers_of_the_engine_are_found_in_it(tmp_path):
    """Without this checkout on the path; torch is not imported, which would take seconds."""
    with tarfile.open(fileobj=io.BytesIO(engine_source().archive)) as archive:
        archive.extractall(tmp_path, filter="data")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ace_studio.jobs.hosts.keeper, ace_studio.jobs.worker\n"
        "import ace_studio.records.report_page as page; from ace_studio.records.places import resource_folder\n"
        "assert page.__file__.startswith(sys.argv[1]) and (resource_folder() / 'report.css').is_file()"
    )
    subprocess.run([sys.executable, "-P", "-c", program, str(tmp_path)], check=True, cwd=tmp_path, env={})
