"""Running a script inside this process."""

import sys
from pathlib import Path

import pytest
import torch

from ace_studio.engine.catch.script import run_script

PATH = Path("/scripts/train.py")


def test_a_script_runs_as_main_with_its_arguments_and_both_are_restored(tmp_path: Path) -> None:
    main, arguments = sys.modules["__main__"], sys.argv
    out = tmp_path / "out"
    code = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(' '.join([__name__, __file__, *sys.argv]))"
    run_script(PATH, code.encode(), ["--epochs", "1"])
    assert out.read_text() == f"__main__ {PATH} {PATH} --epochs 1"
    assert sys.modules["__main__"] is main and sys.argv is arguments


@pytest.mark.parametrize("code", ["", "0", "None"])
def test_an_exit_without_an_error_is_a_normal_end(code: str) -> None:
    run_script(PATH, f"import sys; sys.exit({code})".encode(), [])


def test_an_exit_with_an_error_and_an_exception_come_through() -> None:
    with pytest.raises(SystemExit):
        run_script(PATH, b"raise SystemExit(3)", [])
    with pytest.raises(KeyError):
        run_script(PATH, b"{}['a']", [])


def test_a_script_has_gradients_as_when_python_starts() -> None:
    with torch.no_grad():
        run_script(PATH, b"import torch; assert torch.is_grad_enabled()", [])
        assert not torch.is_grad_enabled()
