"""``sensitivity``: the most sensitive ops first."""

import json

import pytest

from ace_studio.cli import run_command
from ace_studio.records.messages import JobFinished, ModelCaptured, SensitivityFound
from ace_studio.records.results import CaptureReport, OpSensitivity
from tests.gui.graph_tables import table_of

TABLE = table_of([("a", "aten.relu.default", "first"), ("b", "aten.relu.default", "second")])
OPS = (
    OpSensitivity(id="a", precision="int8-static", sqnr_db=40.0),
    OpSensitivity(id="b", precision="int8-static", sqnr_db=20.0),
)


@pytest.fixture
def scanned(answer_with):
    """An engine that found two ops."""
    answer_with(
        ModelCaptured(fingerprint="f", capture=CaptureReport(rung="export", ops=2, seconds=1.0), graph=TABLE),
        SensitivityFound(fingerprint="f", ops=OPS, samples_done=2, samples=2, forwards=3.0, notes=("slow",)),
        JobFinished(),
    )


def test_the_most_sensitive_op_is_shown_first_with_its_module(scanned, recipe, capsys):
    assert run_command(["sensitivity", str(recipe)]) == 0
    out, err = capsys.readouterr()
    assert out.index("second") < out.index("first")
    assert "Cost: 3.0 forward passes over 2 samples" in out
    assert "note: slow" in err


def test_the_json_has_every_op(scanned, recipe, capsys):
    assert run_command(["sensitivity", str(recipe), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in document["sensitivity"]] == ["a", "b"]
    assert (document["format"], document["status"], document["forwards"]) == (1, "ok", 3.0)


@pytest.mark.parametrize("word", ["fp32", "int3"])
def test_only_low_precisions_can_be_scanned(recipe, word, capsys):
    assert run_command(["sensitivity", str(recipe), "--precision", word]) == 2
    assert "is not a low precision" in capsys.readouterr().err
