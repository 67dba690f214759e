"""Sends and receives frames over a socket: four bytes of length, big endian, then that many bytes."""

import socket
import struct
import threading
from contextlib import suppress
from typing import Protocol

from ace_studio.records.errors import AceError, ErrorCode

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Largest frame. A graph takes 100 to 200 bytes an op (`tests/benchmarks/bench_limits.py`)."""
_LENGTH = struct.Struct(">I")


class ChannelLost(ConnectionError):  # noqa: N818 - named for what happened, like ConnectionResetError's family
    """The other side is gone, or does not speak our protocol."""


class Stream(Protocol):
    """What a channel needs of a socket."""

    def sendall(self, content: bytes, /) -> None:
        """Write all of it. Raises: OSError."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read what is there, at least a byte; 0 at the end. Raises: OSError."""

    def shutdown(self, how: int, /) -> None:
        """End both directions. Raises: OSError."""

    def close(self) -> None:
        """Close it."""


class Channel:
    """Frames in both directions over one connected stream socket. Any thread may send; one thread receives."""

    def __init__(self, connection: Stream, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._socket = connection
        self._max_frame_bytes = max_frame_bytes
        self._send_lock = threading.Lock()

    def send(self, payload: bytes) -> None:
        """Send one frame.

        Raises: AceError(UNSUPPORTED) if it is larger than the limit; ChannelLost if the other side is gone.
        """
        if len(payload) > self._max_frame_bytes:
            raise AceError.of(
                ErrorCode.UNSUPPORTED,
                f"What the engine found is too large to be shown: {len(payload) / 1e6:,.1f} MB",
                why=f"one message holds at most {self._max_frame_bytes / 1e6:,.1f} MB, a graph of about a million ops",
                remedy="Trace a part of the model: let the entry function return one of its modules",
            )
        with self._send_lock:
            try:
                self._socket.sendall(_LENGTH.pack(len(payload)))
                self._socket.sendall(payload)
            except OSError as error:
                raise ChannelLost(str(error)) from error

    def receive(self) -> bytes:
        """Wait for one frame.

        Raises: ChannelLost if the other side is gone, in the middle of a frame too, or announces more than the limit.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > self._max_frame_bytes:
            raise ChannelLost(f"a frame of {length} bytes was announced; the limit is {self._max_frame_bytes}")
        return self._read(length)

    def shut(self) -> None:
        """End both directions: a `receive` that waits in another thread, here or there, returns at once."""
        with suppress(OSError):  # it may be unconnected already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self.shut()
        self._socket.close()

    def _read(self, count: int) -> bytes:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            try:
                count_read = self._socket.recv_into(view)
            except OSError as error:
                raise ChannelLost(str(error)) from error
            if count_read == 0:
                missing = len(view)
                raise ChannelLost("closed" if missing == count else f"closed with {missing} of {count} bytes missing")
            view = view[count_read:]
        return bytes(buffer)
