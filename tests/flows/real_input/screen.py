"""A screen of its own (Xvfb with a window manager), and a hand on its keyboard and mouse (xdotool)."""

import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage

PROGRAMS = ("Xvfb", "openbox", "xdotool")
START_S = 60


class Screen:
    """An X display that nobody sees."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        """Start it; skips the test where a program is missing.

        Args:
            folder: An empty one for its picture.
            size: Pixels.
        """
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)} (Debian: apt-get install xvfb openbox xdotool)")
        folder.mkdir(parents=True, exist_ok=True)
        self.size = size
        self._picture = folder / "Xvfb_screen0"
        read, write = os.pipe()
        self._processes = [
            subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size[0]}x{size[1]}x24", "-fbdir", str(folder),
                 "-nolisten", "tcp", "-noreset"],
                pass_fds=(write,), stderr=subprocess.DEVNULL,
            )
        ]  # fmt: skip
        os.close(write)
        with os.fdopen(read) as told:
            self.display = f":{told.readline().strip()}"
        assert self.display != ":", "Xvfb did not start"
        self.environment = {**os.environ, "DISPLAY": self.display}
        manager = subprocess.Popen(["openbox"], env=self.environment, stderr=subprocess.DEVNULL)
        self._processes.append(manager)
        end_s = time.monotonic() + START_S
        while self._do("get_num_desktops").returncode:  # only a window manager answers
            assert time.monotonic() < end_s, "openbox did not start"
            time.sleep(0.05)

    def _do(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["xdotool", *words], env=self.environment, capture_output=True, text=True, timeout=START_S, check=False
        )

    def press(self, *keys: str) -> None:
        """Press keys one after the other, such as ``ctrl+k`` or ``Tab``."""
        done = self._do("key", "--delay", "15", *keys)
        assert not done.returncode and not done.stderr, done.stderr

    def write(self, text: str) -> None:
        """Type a text."""
        assert not self._do("type", "--delay", "8", text).returncode

    def click(self, x: int, y: int, *, button: int = 1, times: int = 1) -> None:
        """Move the pointer there and click."""
        assert 0 <= x < self.size[0] and 0 <= y < self.size[1], f"{x}, {y} is not on the screen"
        self._do("mousemove", str(x), str(y))
        self._do("click", "--repeat", str(times), "--delay", "40", str(button))

    def picture(self) -> QImage:
        """What is on the screen; Xvfb keeps it in a file, in the format of ``xwd``."""
        content = self._picture.read_bytes()
        header = struct.unpack(">25I", content[:100])
        header_bytes, width, height, row_bytes, colours = header[0], header[4], header[5], header[12], header[19]
        pixels = np.frombuffer(content, dtype=np.uint8, offset=header_bytes + 12 * colours, count=row_bytes * height)
        return QImage(pixels.tobytes(), width, height, row_bytes, QImage.Format.Format_RGB32).copy()

    def close(self) -> None:
        """End it."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(timeout=START_S)
