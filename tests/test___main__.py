"""The first word of the command line: a file opens the window, anything else is a command."""

import sys

import pytest

from ace_studio import __main__ as start


@pytest.mark.parametrize(
    ("words", "opened"),
    [
        ([], []),
        (["open", "net.onnx"], ["net.onnx"]),
        (["net.onnx"], ["net.onnx"]),
        (["code/net.py", "net.pth"], ["code/net.py", "net.pth"]),
        (["timm:resnet18"], ["timm:resnet18"]),
        (["run", "net.toml"], None),
        (["--version"], None),
        (["open", "--help"], None),
    ],
)
def test_a_file_opens_the_window_and_a_word_is_a_command(monkeypatch, words, opened):
    seen = []
    monkeypatch.setattr("sys.argv", ["ace-studio", *words])
    monkeypatch.setattr(start, "_open_window", lambda paths: seen.append(paths) or 0)
    monkeypatch.setattr("ace_studio.cli.run_command", lambda _: 0)
    assert start.main() == 0
    assert seen == ([] if opened is None else [opened])


@pytest.mark.skipif(sys.platform != "linux", reason="only there Qt needs to be told of a screen")
def test_without_a_screen_the_window_says_so_instead_of_ending_the_process(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.argv", ["ace-studio", "net.onnx"])
    assert start.main() == 2
    said = capsys.readouterr().err
    assert "there is no screen" in said
    assert "ace-studio --help" in said
