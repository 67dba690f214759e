"""A connection that does not come about says why."""

import pytest

from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.jobs.hosts.transport import HostConnection
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
