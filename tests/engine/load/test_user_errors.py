"""An exception of user code becomes a problem with its line, a reason and a remedy."""

import sys
import textwrap
from pathlib import Path

import pytest
import torch

from ace_studio.engine.load.user_errors import is_library_file, user_code_error
from ace_studio.records.errors import ErrorCode
from tests.engine.load.samples import problem_of, write_net

MAKE = "from torch import nn\ndef make():\n    return nn.Linear(2, 3)\n"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("import no_such_package", ErrorCode.NOT_INSTALLED, "-m pip install no-such-package"),
        ("import sklearn_is_not.here", ErrorCode.NOT_INSTALLED, "-m pip install sklearn-is-not"),
        ("import cv2", ErrorCode.NOT_INSTALLED, "opencv-python-headless"),
        ("import sys; sys.exit(2)", ErrorCode.USER_CODE, "__main__"),
        ("import argparse; argparse.ArgumentParser().parse_args(['-x'])", ErrorCode.USER_CODE, "__main__"),
        ("open('no_such_file.bin')", ErrorCode.USER_CODE, "Path(__file__).parent"),
        ("1 / 0", ErrorCode.USER_CODE, "ZeroDivisionError"),
        ("raise MemoryError", ErrorCode.OUT_OF_MEMORY, "memory"),
        ("raise BaseException('odd')", ErrorCode.USER_CODE, "odd"),
        ("from torch import no_such_name", ErrorCode.USER_CODE, "no_such_name"),
        ("import torch; torch.zeros(2) @ torch.zeros(3)", ErrorCode.USER_CODE, "RuntimeError"),
    ],
)
def test_an_import_that_fails_is_told_with_its_line(tmp_path, line, code, words):
    if line == "import cv2" and _is_installed("cv2"):
        pytest.skip("cv2 is installed here")
    write_net(tmp_path, "m.py", "x = 1\n" + line + "\n" + MAKE)
    problem = problem_of(tmp_path, "m.py")
    assert problem.code is code
    assert words in problem.as_text()
    assert problem.where == f"{tmp_path / 'm.py'}:2"
    assert line in problem.why
    assert "m" not in sys.modules


def _is_installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_the_place_is_the_user_s_last_line_not_one_of_torch(tmp_path):
    source = MAKE + "def helper():\n    return nn.Linear(-1, 'x')\ndef entry():\n    return helper()\n"
    write_net(tmp_path, "m.py", source)
    problem = problem_of(tmp_path, "m.py", entry="entry")
    assert problem.where == f"{tmp_path / 'm.py'}:5"
    assert "nn.Linear(-1, 'x')" in problem.why
    assert "Traceback" in problem.details


def test_an_error_in_a_neighbour_is_told_there(tmp_path):
    write_net(tmp_path, "m.py", "import near\n" + MAKE)
    write_net(tmp_path, "near.py", "\n\nnonsense\n")
    assert problem_of(tmp_path, "m.py").where == f"{tmp_path / 'near.py'}:3"
    write_net(tmp_path, "near.py", "\ndef f(:\n")
    problem = problem_of(tmp_path, "m.py")
    assert problem.code is ErrorCode.BAD_FILE
    assert problem.where == f"{tmp_path / 'near.py'}:2"


def test_the_torchvision_trap_has_its_own_remedy(tmp_path):
    write_net(tmp_path, "m.py", "raise RuntimeError('operator torchvision::nms does not exist')\n" + MAKE)
    problem = problem_of(tmp_path, "m.py")
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert torch.__version__ in problem.remedy
    assert "qnms" in problem.remedy


def test_files_of_python_torch_and_packages_are_a_library_s(tmp_path):
    for file in (torch.__file__, Path.__module__ and __import__("json").__file__, "<string>", "/x/site-packages/a.py"):
        assert is_library_file(file)
    assert not is_library_file(str(tmp_path / "net.py"))
    assert not is_library_file(f"{Path(textwrap.__file__).parent}{'/..' * 40}{tmp_path}/net.py")


def test_a_link_that_leads_to_another_file_now_is_that_file(tmp_path):
    link = tmp_path / "model.py"
    link.symlink_to(torch.__file__)
    assert is_library_file(str(link))
    link.unlink()
    (tmp_path / "own.py").touch()
    link.symlink_to(tmp_path / "own.py")
    assert not is_library_file(str(link))


def test_a_long_message_is_shortened_and_the_traceback_goes_into_the_details():
    problem = user_code_error(ValueError("x" * 1000), "Importing net.py").problem
    assert problem.what.startswith("Importing net.py failed: ValueError: xxx")
    assert len(problem.what) < 500
    assert "x" * 1000 in problem.details
