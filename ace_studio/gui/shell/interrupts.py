"""Ctrl+C in the terminal, and a request to end from the system, close the window properly."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier
from PySide6.QtWidgets import QApplication, QWidget


class Interrupts(QObject):
    """Closes the window at SIGINT and SIGTERM; the exit code is 128 plus the signal's number, as shells have it.

    Qt's event loop runs no Python between events, so a handler alone would wait for the next one: Python also writes
    the signal's number into a socket that the loop watches.
    """

    def __init__(self, application: QApplication, window: QWidget) -> None:
        super().__init__(window)
        self._application, self._window = application, window
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._close)

    def _close(self) -> None:
        number = self._reading.recv(1)[0]
        self._window.close()
        self._application.exit(128 + number)
