"""Faults of the machine are recognised whatever a library made of them."""

import errno

import pytest

from ace_studio.records.errors import ErrorCode
from ace_studio.records.system_faults import missing_room, system_problem


def _wrapped(error: Exception) -> Exception:
    outer = RuntimeError("the library failed")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/a"), "full"),
        (_wrapped(OSError(errno.EMFILE, "Too many open files")), "open"),
        (RuntimeError("C++ compile error\nfatal error: /tmp/a.s: No space left on device"), "full"),
        (OSError(errno.EROFS, "Read-only file system"), "read-only"),
    ],
)
def test_a_fault_of_the_machine_is_named_with_a_remedy(error, word):
    problem = system_problem(error)
    assert problem is not None
    assert problem.code is ErrorCode.SYSTEM
    assert word in problem.what
    assert problem.remedy


def test_an_error_of_the_model_is_none_of_the_machine():
    assert system_problem(_wrapped(FileNotFoundError(2, "No such file"))) is None


def test_missing_room_is_said_with_figures_and_enough_room_is_not(tmp_path):
    assert missing_room(tmp_path, 0) == ""
    assert str(tmp_path) in missing_room(tmp_path, 10**18)
