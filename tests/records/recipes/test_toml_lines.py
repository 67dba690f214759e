"""Lines are found in every way TOML can be written."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.recipes.toml_lines import key_lines


def test_every_way_to_write_a_key_has_its_line():
    text = '''format = 1
# a comment with [brackets] and x = 1
[model]   # trailing
"source" = "a # b.py"
'entry' = """
several
lines"""
inner.deep = { a = 1, "b.c" = [1, 2] }

[[rows]]
x = [
  1,  # one
  { y = 2 },
]
[[rows]]
[rows.sub]
z = \'\'\'a]
b\'\'\'
last = 1979-05-27T07:32:00Z
'''
    tomllib.loads(text)
    lines = key_lines(text)
    assert lines[("format",)] == 1
    assert lines[("model",)] == 3
    assert lines[("model", "source")] == 4
    assert lines[("model", "entry")] == 5
    assert lines[("model", "inner", "deep", "b.c")] == 8
    assert lines[("rows", 0)] == 10
    assert lines[("rows", 0, "x", 0)] == 12
    assert lines[("rows", 0, "x", 1, "y")] == 13
    assert lines[("rows", 1)] == 15
    assert lines[("rows", 1, "sub")] == 16
    assert lines[("rows", 1, "sub", "z")] == 17
    assert lines[("rows", 1, "sub", "last")] == 19


def test_quotes_and_escapes_inside_strings_do_not_end_them():
    text = 'a = "x \\" y"\nb = """one "two" three\\\\"""\nc = 3\n'
    tomllib.loads(text)
    assert key_lines(text)[("c",)] == 3


def test_windows_line_endings_count_once():
    assert key_lines("a = 1\r\nb = 2\r\n")[("b",)] == 2


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", ["a = [}", "a = [=]", "a = [#", "a = [[=", "a = {b=}"])
def test_an_array_that_is_none_comes_to_an_end(text):
    key_lines(text)


@given(st.text(alphabet="ab.[]{}=\"'#,\n\\ 1", max_size=60))
def test_no_text_makes_it_raise_and_valid_texts_are_located_completely(text):
    lines = key_lines(text)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert all((key,) in lines for key in document)
