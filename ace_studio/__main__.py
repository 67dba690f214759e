"""Where a process begins: ``python -m ace_studio`` and the ``ace-studio`` command."""

import gc
import os
import sys

from ace_studio import COMPLETE_VARIABLE


def main() -> int:
    """Open the window if no command was given, else do what the command says; return the exit code."""
    _open_closed_streams()
    words = sys.argv[1:]
    if COMPLETE_VARIABLE not in os.environ:  # else a shell asks what may follow the words that the user typed
        if not words or (words[0] == "open" and not {"-h", "--help"} & {*words}):
            return _open_window(words[1:])
        if names_a_file(words[0]):
            return _open_window(words)
    from ace_studio.cli import run_command  # noqa: PLC0415 - the window starts without the command line

    return run_command(words)


def _open_closed_streams() -> None:
    """Give stdin, stdout and stderr that were closed (``<&-``, ``>&-``) a place to go to.

    Else the next file that is opened, or the engine's channel, takes their number and what is printed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None or sys.stderr is None:
        null = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the process ends
        sys.stdout, sys.stderr = sys.stdout or null, sys.stderr or null


def names_a_file(word: str) -> bool:
    """Whether the first word is a file or the name of a model; words of commands have none of these characters."""
    return not word.startswith("-") and any(mark in word for mark in "./\\:")


def _open_window(words: list[str]) -> int:
    gc.disable()  # modules stay for good: to look for garbage while they are imported is in vain
    try:
        from ace_studio.gui.shell.start import run_window  # noqa: PLC0415 - the command line starts without Qt
    except ImportError as error:
        return _say_why_not(
            f"{error}\n  why: Qt or one of its libraries is missing",
            "pip install 'ace-studio[window]'; on Debian and Ubuntu also: apt-get install libgl1 libegl1 "
            "libxkbcommon0 libfontconfig1 libdbus-1-3 libglib2.0-0",
        )
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _SCREENS):  # Qt would abort the process
        return _say_why_not(
            f"there is no screen\n  why: none of {', '.join(_SCREENS)} is set, as in a shell on another machine",
            "Start it on a desktop, or with X11 forwarding: ssh -X",
        )
    return run_window(words)


_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
"""The variables by which Qt finds where to draw."""


def _say_why_not(reason: str, remedy: str) -> int:
    words = f"The window cannot open: {reason}\n  remedy: {remedy}; or use the command line: ace-studio --help"
    print(words, file=sys.stderr)  # noqa: T201 - there is no window to say it in
    return 2


if __name__ == "__main__":
    sys.exit(main())
