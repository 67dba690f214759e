"""What the build machine's script asks of the tests: no slow test starts after its time."""

from __future__ import annotations

import time

import pytest


@pytest.fixture
def setup_of_tests(request, root):
    """The function of tests/conftest.py that is called before each test."""
    plugins = request.config.pluginmanager.get_plugins()
    (conftest,) = [each for each in plugins if getattr(each, "__file__", None) == str(root / "tests" / "conftest.py")]
    return conftest.pytest_runtest_setup


@pytest.mark.slow
@pytest.mark.parametrize("seconds_left", [-1, 3600])
def test_no_slow_test_starts_after_its_time(monkeypatch, request, setup_of_tests, seconds_left):
    monkeypatch.setenv("ACE_SLOW_TESTS_UNTIL", str(time.time() + seconds_left))
    if seconds_left > 0:
        setup_of_tests(request.node)
        return
    with pytest.raises(pytest.skip.Exception, match="no time was left"):
        setup_of_tests(request.node)


def test_any_other_test_starts_at_any_time(monkeypatch, request, setup_of_tests):
    monkeypatch.setenv("ACE_SLOW_TESTS_UNTIL", "0")
    setup_of_tests(request.node)
