"""Tools and their arguments come from the command line, without what is the user's."""

import pytest
import typer.main

from ace_studio.cli.agents.tools import ROWS, tool_description, tool_schema, words_of
from ace_studio.cli.app import app
from ace_studio.records.errors import AceError

ROW = {row.name: row for row in ROWS}


def test_every_command_that_answers_in_json_is_a_tool_but_those_for_people():
    commands = typer.main.get_command(app).commands
    with_json = {name for name, one in commands.items() if any("--json" in each.opts for each in one.params)}
    assert with_json - set(ROW) == {"trust", "demo"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_tool_has_an_argument_that_gives_trust_or_ends_containment(row):
    assert not {"trust", "contain", "no_contain", "add"} & set(tool_schema(row)["properties"])
    assert tool_description(row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_read_only], ids=lambda row: row.name)
def test_a_tool_that_only_reads_has_no_argument_that_writes(row):
    writing = {"tag", "note", "save", "out", "apply", "remove", *({"name"} if row.name == "history" else set())}
    assert not writing & set(tool_schema(row)["properties"])


def test_the_schema_says_what_the_command_line_takes():
    schema = tool_schema(ROW["run"])
    assert schema["required"] == ["out"] and schema["additionalProperties"] is False
    assert schema["properties"]["shapes_from"]["enum"] == ["examples", "data"]
    assert schema["properties"]["batch_only"]["type"] == "boolean"
    assert tool_schema(ROW["trace"])["properties"]["input"]["items"] == {"type": "string"}
    assert tool_schema(ROW["advise"])["properties"]["apply"]["type"] == "integer"
    assert tool_schema(ROW["prune"])["properties"]["amount"]["type"] == "number"


def test_a_value_cannot_become_an_option():
    words = words_of(ROW["trace"], {"path": "--trust", "entry": "--trust", "input": ["x=1x3", "--trust"]})
    assert words == ["trace", "--json", "--entry=--trust", "--input=x=1x3", "--input=--trust", "--", "--trust"]


def test_flags_are_given_or_left_out():
    words = words_of(ROW["fix"], {"path": "a.toml", "write_source": True, "apply_controls": False, "at": None})
    assert words == ["fix", "--json", "--write-source", "--", "a.toml"]
    assert words_of(ROW["prune"], {"path": "a.toml"}) == ["prune", "--json", "--preview", "--", "a.toml"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"trust": True}, "has no argument 'trust'"),
        ({"path": ["a", "b"]}, "path of trace is one string"),
        ({"input": "x=1"}, "input of trace is a list"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(values, said):
    with pytest.raises(AceError, match=said):
        words_of(ROW["trace"], values)


@pytest.mark.parametrize(("tool", "name"), [("plan", "save"), ("fix", "save_patch")])
def test_no_tool_writes_over_code(tool, name):
    with pytest.raises(AceError, match="does not end with"):
        words_of(ROW[tool], {"path": "a.toml", name: "net.py"})


def test_no_tool_lets_anything_be_sent():
    for row in ROWS:
        assert not {"host", "hosts", "send", "scheduler"} & set(tool_schema(row)["properties"])
    with pytest.raises(AceError, match="no argument 'send'"):
        words_of(ROW["trace"], {"path": "a.toml", "send": ["../.ssh/id_rsa"]})
