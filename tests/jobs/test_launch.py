import socket
import sys
import threading
import time

import pytest

from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.launch import LaunchOptions, accept_with_token, clean_environment, default_interpreter

TOKEN = "t" * 64


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def connect(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname())


def test_only_the_one_with_the_token_gets_in_and_then_nobody(listener: socket.socket) -> None:
    address = listener.getsockname()
    accepted: list[Channel] = []
    thread = threading.Thread(target=lambda: accepted.append(accept_with_token(listener, TOKEN, is_alive=lambda: True)))
    thread.start()
    for wrong in (b"w" * 64, b"", TOKEN.encode()[:-1], b"x" * 10_000):
        with connect(listener) as intruder:
            try:
                Channel(intruder).send(wrong)
                assert intruder.recv(1) == b""
            except (ChannelLost, ConnectionError):
                pass  # thrown out before it had finished
    assert not accepted
    with connect(listener) as worker:
        Channel(worker).send(TOKEN.encode())
        thread.join(5)
        (channel,) = accepted
        Channel(worker).send(b"hello")
        assert channel.receive() == b"hello"
        channel.close()
    with pytest.raises(OSError):
        socket.create_connection(address, timeout=1)


def test_waiting_ends_when_the_worker_dies_before_it_connects(listener: socket.socket) -> None:
    begin_s = time.monotonic()
    with pytest.raises(ChannelLost):
        accept_with_token(listener, TOKEN, is_alive=lambda: time.monotonic() - begin_s < 0.2)
    assert time.monotonic() - begin_s < 1.0


def test_the_environment_is_kept_but_for_what_does_harm() -> None:
    given = {
        "PATH": "/bin", "HOME": "/root", "LD_LIBRARY_PATH": "/cuda", "PYTHONHOME": "/x", "PYTHONPATH": "/mine",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "QT_QPA_PLATFORM_PLUGIN_PATH": "/qt",
    }  # fmt: skip
    other = clean_environment(LaunchOptions(interpreter="/other/python", environment={"EXTRA": "1"}), given)
    kept = {"PATH": "/bin", "HOME": "/root", "LD_LIBRARY_PATH": "/cuda", "EXTRA": "1"}
    assert {name: value for name, value in other.items() if name != "PYTHONIOENCODING"} == kept
    assert clean_environment(LaunchOptions(), given)["PYTHONPATH"] == "/mine"


def test_a_frozen_window_gives_back_the_library_path_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setenv("ACE_STUDIO_PYTHON", "/bundled/python")
    assert default_interpreter() == "/bundled/python"
    given = {"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": "/cuda", "PYTHONPATH": "/bundle"}
    kept = clean_environment(LaunchOptions(), given)
    assert kept["LD_LIBRARY_PATH"] == "/cuda" and "PYTHONPATH" not in kept
    assert "LD_LIBRARY_PATH" not in clean_environment(LaunchOptions(), {"LD_LIBRARY_PATH": "/bundle"})
