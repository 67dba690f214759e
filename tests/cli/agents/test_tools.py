"""Tools and their arguments come from the command line, without what is the user's."""

from pathlib import Path

import pytest
import typer.main

from ace_studio.cli.agents.tools import (
    REPLACE,
    ROWS,
    USES,
    Use,
    tool_arguments,
    tool_description,
    tool_schema,
    with_places,
    words_of,
)
from ace_studio.cli.app import app
from ace_studio.records.errors import AceError
from ace_studio.records.roots import Roots

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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_table_says_of_every_argument_whether_it_is_a_path(row):
    """`USES` has no default: an argument that it lacks, or that it should not have, is found here."""
    command = typer.main.get_command(app).commands[row.name]
    typed = {one.name for one in command.params if Path in _types(one.type_descriptor.annotation)}
    arguments = {one.name: one for one in tool_arguments(row) if one.name != REPLACE}
    assert len(arguments) == len(tool_arguments(row)) - (not row.is_read_only), "no two have one name"
    judged = {Use.READ, Use.WRITE, Use.WRITE_INSIDE}
    for name, one in arguments.items():
        if name in typed:
            assert one.use in judged, f"{row.name}.{name} is a path of the command line"
        known = USES.get(f"{row.name}.{name}", USES.get(name))
        assert one.use is known
        if row.is_read_only:
            assert one.use not in (Use.WRITE, Use.WRITE_INSIDE)


def test_the_table_of_uses_names_no_argument_that_no_tool_has():
    names = {name for row in ROWS for one in tool_arguments(row) for name in (one.name, f"{row.name}.{one.name}")}
    assert set(USES) <= names


def test_every_argument_that_names_something_else_was_looked_at_by_a_person():
    """Adding an argument means deciding here what it is."""
    plain = {
        f"{row.name}.{one.name}" for row in ROWS for one in tool_arguments(row) if one.use in (Use.NONE, Use.REQUEST)
    }
    assert plain == {
        "trace.entry", "trace.input", "trace.compare_rungs", "trace.batch_only", "trace.no_cache", "fix.at",
        "fix.entry", "fix.input", "fix.apply_controls", "fix.write_source", "plan.set", "plan.entry", "plan.input",
        "recipes.name", "recipes.entry", "sensitivity.precision", "sensitivity.entry", "sensitivity.input",
        "values.op", "values.example", "values.target", "values.entry", "values.input", "prune.method",
        "prune.amount", "catch.arguments", "catch.module", "catch.calls", "run.entry", "run.input", "run.batch_only",
        "run.shapes_from", "run.no_cache", "sweep.workers", "measure.device", "measure.index", "advise.apply",
        "advise.done", "export.run",
    }  # fmt: skip


def _types(annotation):
    return {annotation, *getattr(annotation, "__args__", ())}


@pytest.mark.parametrize(("tool", "default"), [("catch", "caught"), ("sweep", "ace-output/sweep")])
def test_a_place_to_write_that_is_not_named_is_judged_too(tool, default, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"script": "a.py"} if tool == "catch" else {"paths": ["a.toml"]}
    placed, _ = with_places(ROW[tool], given, Roots(write=(tmp_path.resolve(),)))
    assert placed["out"] == str(tmp_path.resolve() / default)
    with pytest.raises(AceError, match="No tool may write"):
        with_places(ROW[tool], given, Roots(read=(tmp_path.resolve(),)))


def test_a_number_in_the_history_and_a_model_of_a_package_are_no_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_places(ROW["compare"], {"first": "12", "second": "13"}, Roots())
    with_places(ROW["trace"], {"path": "timm:resnet18"}, Roots())
    with pytest.raises(AceError, match="No tool may read"):
        with_places(ROW["compare"], {"first": "12", "second": "there"}, Roots())


def test_no_tool_lets_anything_be_sent():
    for row in ROWS:
        assert not {"host", "hosts", "send", "scheduler"} & set(tool_schema(row)["properties"])
    with pytest.raises(AceError, match="no argument 'send'"):
        words_of(ROW["trace"], {"path": "a.toml", "send": ["../.ssh/id_rsa"]})
