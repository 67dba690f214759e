"""The answer of a tool: the command's JSON, its files, and whether it failed."""

import json

from ace_studio.cli.agents.answers import EXIT_CODE_KEY, MOST_ENTRIES, linked_files, tool_answer


def test_the_answer_is_the_json_of_the_command(tmp_path):
    found = tool_answer(0, '{"format": 1, "status": "ok"}', {}, tmp_path / "whole.json")
    assert found.structured_content == {"format": 1, "status": "ok"} and not found.is_error
    assert json.loads(found.content[0].text) == found.structured_content
    assert found.meta == {EXIT_CODE_KEY: 0}


def test_a_goal_that_is_not_met_is_an_answer_and_a_failed_job_is_an_error(tmp_path):
    assert not tool_answer(4, '{"status": "goal-not-met"}', {}, tmp_path / "whole.json").is_error
    failed = tool_answer(6, '{"status": "failed"}', {}, tmp_path / "whole.json")
    assert failed.is_error and failed.meta == {EXIT_CODE_KEY: 6}


def test_a_command_that_printed_nothing_is_said_to_have_failed(tmp_path):
    assert tool_answer(130, "", {}, tmp_path / "whole.json").structured_content == {"format": 1, "status": "cancelled"}


def test_a_list_is_text_only(tmp_path):
    found = tool_answer(0, "[1, 2]", {}, tmp_path / "whole.json")
    assert found.structured_content is None and found.content[0].text == "[1, 2]"


def test_a_long_list_ends_early_and_the_whole_answer_is_a_file(tmp_path):
    whole = tmp_path / "whole.json"
    printed = json.dumps({"capture": {"ops": list(range(MOST_ENTRIES + 1))}})
    found = tool_answer(0, printed, {}, whole)
    assert found.structured_content["capture"]["ops"] == list(range(MOST_ENTRIES))
    assert str(whole) in found.content[1].text and found.content[2].uri == whole.as_uri()
    assert whole.read_text() == printed


def test_files_that_were_written_are_linked_and_those_that_are_not_there_are_not(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "artifacts").mkdir()
    document = {"runs": [{"artifact": "artifacts"}, {"artifact": "gone"}, {"artifact": None}]}
    found = list(linked_files(document, {"out": str(tmp_path)}))
    assert found == [tmp_path / "result.json", tmp_path / "artifacts"]
    link = tool_answer(0, json.dumps(document), {"out": str(tmp_path)}, tmp_path / "whole.json").content[1]
    assert (link.uri, link.mime_type, link.size) == (found[0].as_uri(), "application/json", 2)
    saved = tmp_path / "result.json"
    assert list(linked_files({"saved": str(saved)}, {})) == [saved]
    assert list(linked_files({"files": [{"path": str(saved)}]}, {})) == [saved]
