import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.records.errors import AceError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_frames_arrive_whole_and_in_order(pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = Channel(pair[0]), Channel(pair[1])
    frames = [b"", b"x", bytes(range(256)) * 4000]
    thread = threading.Thread(target=lambda: [sender.send(frame) for frame in frames])
    thread.start()
    assert [receiver.receive() for _ in frames] == frames
    thread.join()


def test_frames_of_several_threads_are_not_mixed(pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = Channel(pair[0]), Channel(pair[1])
    letters = [b"a", b"b", b"c"]
    threads = [threading.Thread(target=lambda one=one: [sender.send(one * 3000) for _ in range(30)]) for one in letters]
    for thread in threads:
        thread.start()
    frames = [receiver.receive() for _ in range(90)]
    for thread in threads:
        thread.join()
    assert sorted(frames) == sorted(one * 3000 for one in letters for _ in range(30))


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">I", 10) + b"short"])
def test_a_truncated_frame_is_a_lost_channel(pair: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    pair[0].sendall(sent)
    pair[0].close()
    with pytest.raises(ChannelLost):
        Channel(pair[1]).receive()


def test_a_frame_over_the_limit_is_refused_on_both_sides(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(AceError, match="too large to be shown"):
        Channel(pair[0], max_frame_bytes=10).send(b"x" * 11)
    Channel(pair[0]).send(b"x" * 11)
    with pytest.raises(ChannelLost, match="limit"):
        Channel(pair[1], max_frame_bytes=10).receive()


def test_shutting_wakes_a_receive_that_waits(pair: tuple[socket.socket, socket.socket]) -> None:
    channel = Channel(pair[0])
    timer = threading.Timer(0.05, channel.shut)
    timer.start()
    with pytest.raises(ChannelLost):
        channel.receive()
    timer.join()


def test_sending_to_nobody_is_a_lost_channel(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].close()
    with pytest.raises(ChannelLost):
        Channel(pair[0]).send(b"x" * 1_000_000)
