"""The first word of the command line: a file opens the window, anything else is a command."""

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
