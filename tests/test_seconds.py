"""The record of seconds names what has grown, and the bar knows how much is left."""

import json

import pytest

from tests import seconds

pytest_plugins = ["pytester"]


def record(**folders):
    return {f"tests/{name}": {"seconds": taken, "tests": 10} for name, taken in folders.items()}


def test_a_folder_that_takes_a_fifth_more_is_named_and_one_that_waited_once_is_not():
    kept = record(engine=100.0, gui=50.0, cli=1.0)
    assert seconds.grown(kept, record(engine=119.0, gui=49.0, cli=3.5)) == []
    (words,) = seconds.grown(kept, record(engine=121.0, gui=50.0, cli=1.0))
    assert words.startswith("tests/engine: 121.0 s in 10 tests, 21.0 s more")


def test_a_folder_that_is_new_is_named_when_it_takes_long():
    assert [one.partition(":")[0] for one in seconds.grown({}, record(new=9.0, small=1.0))] == ["tests/new"]


def test_the_folder_of_a_test_has_three_levels_at_most():
    assert seconds.folder_of("tests/engine/targets/onnx/test_static.py::test_x[a/b]") == "tests/engine/targets"
    assert seconds.folder_of("tests/test_help.py::test_x") == "tests"


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(seconds, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(seconds, "LAST", tmp_path / "last.json")
    return tmp_path


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["seconds", *words])
    return seconds.main()


def test_the_last_run_becomes_the_record_on_request(places, monkeypatch, capsys):
    assert run(monkeypatch) == 0 and "packaging/ace test" in capsys.readouterr().out
    (places / "last.json").write_text(json.dumps(record(engine=100.0, gui=50.0)))
    assert run(monkeypatch) == 0 and "--keep" in capsys.readouterr().out
    assert run(monkeypatch, "--keep") == 0
    assert run(monkeypatch) == 0
    (places / "last.json").write_text(json.dumps(record(engine=130.0, gui=50.0)))
    assert run(monkeypatch) == 1 and "tests/engine: 130.0 s" in capsys.readouterr().out
    assert json.loads((places / "kept.json").read_text()) == record(engine=100.0, gui=50.0)


@pytest.mark.parametrize("words", [[], ["-m", "not slow"], ["-k", "x"], ["test_one.py"], ["--full"]], ids=" ".join)
def test_only_a_run_of_all_tests_leaves_its_seconds(pytester, words):
    pytester.makeconftest(
        """
        from tests import seconds
        seconds.LAST = seconds.Path("last.json").absolute()
        def pytest_addoption(parser):
            parser.addoption("--full", action="store_true")
            parser.addoption("--bar", action="store_true")
        pytest_configure = seconds.register
        """
    )
    pytester.makepyfile(test_one="def test_x(): pass")
    pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)
    assert (pytester.path / "last.json").exists() == (words == [])
