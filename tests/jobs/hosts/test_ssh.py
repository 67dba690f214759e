"""The command of ssh, and what its failures mean."""

import pytest

from ace_studio.jobs.hosts.ssh import SSH_VARIABLE, connection_problem, python_words, ssh_command
from ace_studio.records.errors import AceError, ErrorCode


def test_the_command_asks_nothing_and_another_one_may_be_named(monkeypatch):
    monkeypatch.delenv(SSH_VARIABLE, raising=False)
    command = ssh_command("user@box", "python3 -")
    assert command[0] == "ssh" and "BatchMode=yes" in command and command[-3:] == ["--", "user@box", "python3 -"]
    monkeypatch.setenv(SSH_VARIABLE, "ssh -F '/a b/config'")
    assert ssh_command("box", "x")[:3] == ["ssh", "-F", "/a b/config"]


@pytest.mark.parametrize("host", ["-oProxyCommand=reboot", "", "a b", "user@-x", "box;ls", "box\nls"])
def test_no_host_can_be_an_option_or_a_command(host):
    with pytest.raises(AceError) as caught:
        ssh_command(host, "x")
    assert caught.value.problem.code is ErrorCode.USAGE


@pytest.mark.parametrize(
    ("python", "words"), [("", "python3"), ("~/my env/p", "\"$HOME\"/'my env/p'"), ("/a;b", "'/a;b'")]
)
def test_a_python_there_is_one_word_of_the_shell(python, words):
    assert python_words(python) == words


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "is not the one"),
        ("ssh: Could not resolve hostname box: Name or service not known", "There is no host named box"),
        ("ssh: connect to host box port 22: Connection timed out", "cannot be reached"),
        ("ssh: connect to host box port 22: Connection refused", "cannot be reached"),
        ("Connection closed by 10.0.0.1 port 22", "The connection to user@box was cut"),
        ("something new", "The command on user@box failed"),
    ],
)
def test_what_ssh_says_becomes_a_problem_with_a_remedy(said, what):
    problem = connection_problem("user@box", "", 255, said)
    assert what in problem.what and problem.remedy and problem.where == "user@box"
    assert problem.why in said or "exit code" in problem.why
