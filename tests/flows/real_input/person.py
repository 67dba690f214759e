"""A person at the window: finds things by what they say, and uses the keyboard and the mouse of the screen."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.flows.real_input.screen import Screen

Seen = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
ANSWER_S = 60
"""How long anything but the engine's work may take; generous, because the machine may do other work."""
ENGINE_S = 280


class Person:
    """One person, one window. Every step is a picture in ``pictures``."""

    def __init__(self, screen: Screen, folder: Path, *, engines: str, scale: float = 1.0) -> None:
        """Nothing is started.

        Args:
            screen: Where the window will be.
            folder: For the user's own files, and for pictures (``pictures``).
            engines: Address of the server that engines are forked from.
            scale: Of the whole window.
        """
        self.screen, self.folder, self.scale, self._engines = screen, folder, scale, engines
        self.pictures = Path(os.environ.get("ACE_JOURNEY_PICTURES", folder)) / folder.name
        folder.mkdir(parents=True, exist_ok=True)
        self.pictures.mkdir(parents=True, exist_ok=True)
        self.clicks = 0
        self.keys = 0
        self._shot = 0
        self._window: subprocess.Popen[bytes] | None = None
        self._socket = folder / "seen"
        self._told = folder / "stderr.txt"

    # --- the window ---

    def start(self, *paths: Path | str) -> None:
        """Start the window, with files as on the command line, and wait until it can be used."""
        self._socket.unlink(missing_ok=True)
        home = self.folder / "home"
        environment = {
            **self.screen.environment,
            **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
            "HOME": str(home),
            "QT_QPA_PLATFORM": "xcb",
            "QT_SCALE_FACTOR": str(self.scale),
        }
        (home / "Downloads").mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "tests.flows.real_input.watched_window",
            str(self._socket),
            self._engines,
        ]
        with self._told.open("ab") as told:
            self._window = subprocess.Popen(
                [*command, *map(str, paths)],
                cwd=ROOT,
                env=environment,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
        self.wait(lambda seen: any(one["role"] == "MenuBar" for one in seen), "the window")
        self.shoot("window")

    def quit(self) -> None:
        """Close the window by its key, and see it end."""
        self.screen.press("ctrl+q")
        assert self._window is not None
        assert self._window.wait(timeout=ANSWER_S) == 0, self.told
        self._window = None
        assert "Traceback" not in self.told, self.told

    def close(self) -> None:
        """End the window whatever it does."""
        if self._window is not None and self._window.poll() is None:
            os.killpg(self._window.pid, signal.SIGTERM)
            try:
                self._window.wait(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(self._window.pid, signal.SIGKILL)
                self._window.wait()

    @property
    def told(self) -> str:
        """What the window's process printed."""
        return self._told.read_text(encoding="utf-8", errors="replace")

    # --- seeing ---

    def look(self) -> list[Seen]:
        """All that is shown, as a screen reader has it."""
        seen: list[Seen] = self._ask()["seen"]
        return seen

    def _ask(self) -> dict[str, Any]:
        assert self._window is not None and self._window.poll() is None, f"the window has ended\n{self.told}"
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(ANSWER_S)
            asked.connect(str(self._socket))
            try:
                said = b"".join(iter(lambda: asked.recv(1 << 16), b""))
            except ConnectionResetError:
                code = self._window.wait(timeout=ANSWER_S)
                raise AssertionError(f"the window ended with {code} when it was asked\n{self.told}") from None
        answer: dict[str, Any] = json.loads(said)
        return answer

    def wait(self, is_so: Callable[[list[Seen]], Any], what: str, *, within_s: float = ANSWER_S) -> Any:
        """Look until something is so, and return what the function found."""
        end_s = time.monotonic() + within_s
        while True:
            try:
                found = is_so(self.look())
            except (FileNotFoundError, ConnectionRefusedError):
                found = None
            if found:
                return found
            if time.monotonic() > end_s:
                self.shoot(f"no {what}")
                raise AssertionError(f"{what} was not seen within {within_s:.0f} s; pictures are in {self.pictures}")
            time.sleep(0.15)

    def find(self, name: str, *, role: str = "", within_s: float = ANSWER_S) -> Seen:
        """The enabled element whose name matches a regular expression from its start, the topmost of several."""

        def search(seen: list[Seen]) -> Seen | None:
            hits = [one for one in seen if one["enabled"] and re.match(name, one["name"]) and role in ("", one["role"])]
            return hits[-1] if hits else None

        found: Seen = self.wait(search, f"{role} {name}".strip(), within_s=within_s)
        return found

    def reads(self, words: str, *, within_s: float = ANSWER_S) -> str:
        """Wait until a text on the screen contains a regular expression; returns the text."""

        def search(seen: list[Seen]) -> str | None:
            texts = [text for one in seen for text in (one["name"], one["value"]) if re.search(words, text)]
            return texts[0] if texts else None

        found: str = self.wait(search, words, within_s=within_s)
        return found

    @property
    def focus(self) -> Seen:
        """What has the keyboard."""
        return self._ask()["focus"] or {"role": "", "name": "", "value": "", "window": ""}

    def shoot(self, what: str) -> None:
        """Write a picture of the screen."""
        self._shot += 1
        words = re.sub(r"[^a-z0-9]+", "-", what.lower()).strip("-")[:60]
        self.screen.picture().save(str(self.pictures / f"{self._shot:02}-{words}.png"))

    # --- doing ---

    def press(self, *keys: str) -> None:
        """Press keys, then look at the screen."""
        self.screen.press(*keys)
        self.keys += len(keys)
        self._after(" ".join(keys[:4]))

    def write(self, text: str) -> None:
        """Type a text."""
        self.screen.write(text)
        self.keys += len(text)
        self._after(f"typed {text}")

    def click(self, name: str, *, role: str = "", within_s: float = ANSWER_S, button: int = 1, times: int = 1) -> Seen:
        """Click into the middle of what has this name."""
        found = self.find(name, role=role, within_s=within_s)
        while True:  # a hand does not click on what is moving
            time.sleep(0.25)
            place, found = found["rect"], self.find(name, role=role)
            if place == found["rect"]:
                break
        x, y, width, height = place
        self.screen.click(x + width // 2, y + height // 2, button=button, times=times)
        self.clicks += 1
        self._after(f"click {found['name']}")
        return found

    def tab_to(self, name: str, *, key: str = "Tab", most: int = 80) -> Seen:
        """Press Tab until something has the keyboard."""
        for _ in range(most):
            here = self.focus
            if re.match(name, here["name"]):
                self._after(f"tab to {here['name']}")
                return here
            self.screen.press(key)
            self.keys += 1
        self.shoot(f"no {name}")
        raise AssertionError(f"{key} does not reach {name}; it is at {self.focus['name']}")

    def choose_file(self, path: Path) -> None:
        """Give a path to the file dialog that is open; Return counts as the click on its button.

        A click would first close the list of completions.
        """
        self.find("File name|Directory", role="EditableText")
        self.screen.press("ctrl+a")
        self.write(str(path))
        self.press("Return")
        self.clicks += 1

    def _after(self, what: str) -> None:
        seen = self.look()  # answered only after the events before it
        time.sleep(0.2)  # a repaint, and the pointer's hover
        self.shoot(what)
        broken = [one["name"] for one in seen if re.search("Something went wrong in|could not show this", one["name"])]
        assert not broken, f"{broken}; pictures are in {self.pictures}"
