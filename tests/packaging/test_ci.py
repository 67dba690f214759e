"""What the build machine's script asks of the tests: slow ones come last, and none starts after its time."""

import time
from types import SimpleNamespace

import pytest


@pytest.fixture
def hooks(request, root):
    """The module tests/conftest.py."""
    plugins = request.config.pluginmanager.get_plugins()
    (conftest,) = [each for each in plugins if getattr(each, "__file__", None) == str(root / "tests" / "conftest.py")]
    return conftest


@pytest.fixture
def setup_of_tests(hooks):
    """The function of tests/conftest.py that is called before each test."""
    return hooks.pytest_runtest_setup


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


class NamedTest(SimpleNamespace):
    """As much of a collected test as its place in the order depends on; slow if its name is in capitals."""

    def get_closest_marker(self, name):
        return name if name == "slow" and self.name.isupper() else None


@pytest.mark.parametrize(("processes", "order"), [(1, "abcdefgWXYZ"), (2, "abcWXdefgYZ"), (3, "abWcdXefgYZ")])
def test_slow_tests_are_the_last_of_each_process(hooks, processes, order):
    items = [NamedTest(name=name) for name in "aWbcXdYeZfg"]
    config = SimpleNamespace(option=SimpleNamespace(full=False))
    if processes > 1:
        config.workerinput = {"workercount": processes}
    hooks.pytest_collection_modifyitems(config, items)
    assert "".join(one.name for one in items) == order
