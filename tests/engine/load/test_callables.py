"""Callables that a recipe names are found, checked and called."""

from pathlib import Path

import pytest

from ace_studio.engine.load.callables import describe_value, parse_reference
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import NET_SOURCE, load, problem_of, write_net


def test_without_an_entry_the_one_that_plainly_makes_the_model_is_taken(tmp_path):
    write_net(tmp_path)
    assert load(tmp_path, "net.py").data.examples  # make_model, not the class beside it
    only_class = NET_SOURCE.replace("def make_model", "def _hidden")
    write_net(tmp_path, "only.py", only_class)
    assert type(load(tmp_path, "only.py").module).__name__ == "Net"
    write_net(tmp_path, "one.py", "from torch import nn\ndef thing():\n    return nn.Linear(2, 3)\ndef trace(): ...\n")
    assert type(load(tmp_path, "one.py", tracing="trace").module).__name__ == "Linear"


def test_without_an_entry_and_with_a_choice_the_choices_are_listed(tmp_path):
    write_net(tmp_path, source=NET_SOURCE + "\ndef build(): ...\n")
    problem = problem_of(tmp_path, "net.py")
    assert problem.code is ErrorCode.NOT_FOUND
    assert "make_model() in line" in problem.why
    write_net(tmp_path, "none.py", "x = 1\n")
    assert "nor a callable" in problem_of(tmp_path, "none.py").what


def test_a_missing_entry_names_the_nearest(tmp_path):
    write_net(tmp_path)
    problem = problem_of(tmp_path, "net.py", entry="make_modell")
    assert problem.code is ErrorCode.NOT_FOUND
    assert "did you mean 'make_model'?" in problem.remedy


def test_a_function_that_cannot_take_what_it_gets_is_told_before_anything_runs(tmp_path):
    write_net(
        tmp_path, source=NET_SOURCE + "\ndef score(model, loader):\n    return 1.0\n\ndef data(n):\n    return []\n"
    )
    problem = problem_of(tmp_path, "net.py", entry="Net", evaluate="score")
    assert problem.what == "score(model, loader) cannot be called as [evaluate] function"
    assert "score(predict): missing a required argument: 'loader'" in problem.why
    assert problem.where.startswith(f"{tmp_path / 'net.py'}:") and "take predict alone" in problem.remedy
    assert "take no argument" in problem_of(tmp_path, "net.py", entry="Net", calibration="data").remedy


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        ({}, "a dict with 0 entries"),
        ((1, "a"), "a tuple with 2 entries of int, str"),
        (int, "the class int"),
        (1.5, "an object of type float"),
    ],
)
def test_a_value_is_described_in_a_few_words(value, words):
    assert describe_value(value) == words


def test_a_reference_is_a_name_in_the_default_file_or_in_a_file_that_it_names(tmp_path):
    default = tmp_path / "m.py"
    assert parse_reference("make ", role="entry", folder=tmp_path, default=default).path == default
    other = parse_reference("sub/o.py:Net.make", role="entry", folder=tmp_path, default=default)
    assert (other.path, other.name) == ((tmp_path / "sub/o.py").resolve(), "Net.make")
    with pytest.raises(AceError, match="not in which file"):
        parse_reference("make", role="entry", folder=Path(), default=None)
