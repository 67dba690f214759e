"""``compare`` and ``export``: figures of two runs beside each other, and artifacts copied out of a run."""

import hashlib
import json

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.records.results import encode_result
from tests.cli.fake_engine import LATENCY, result


def write_run(folder, **changes):
    folder.mkdir()
    (folder / "artifacts").mkdir()
    (folder / "artifacts" / "net.pt2").write_bytes(b"program")
    run = replace(result().runs[0], artifact="artifacts/net.pt2", **changes)
    (folder / "result.json").write_bytes(encode_result(replace(result(), runs=(run,))))
    return folder


@pytest.fixture
def first(tmp_path):
    return write_run(tmp_path / "first")


def test_two_runs_are_compared(first, tmp_path, capsys):
    second = write_run(tmp_path / "second", latency_ms=replace(LATENCY, p10=0.4, p50=0.5, p90=0.6))
    assert run_command(["compare", str(first), str(second), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["repeats"]
    row = next(row for row in found["rows"] if row["name"] == "openvino fp32")
    assert row["latency"]["change"] == 0.25 and found["same_model"] is True
    assert run_command(["compare", str(first), str(second)]) == 0
    assert "2.000 -> 0.5000 0.25x" in capsys.readouterr().out


def test_the_chosen_artifact_is_copied_with_its_hash(first, tmp_path, capsys):
    place = tmp_path / "copy.pt2"
    assert run_command(["export", str(first), "--to", str(place), "--json"]) == 0
    expected = {"path": str(place), "sha256": hashlib.sha256(b"program").hexdigest()}
    assert json.loads(capsys.readouterr().out)["files"] == [expected]
    assert place.read_bytes() == b"program"


def test_a_run_without_an_artifact_cannot_be_exported(first, tmp_path, capsys):
    assert run_command(["export", str(first), "--run", "3", "--to", str(tmp_path)]) == 2
    assert "This run has no artifact" in capsys.readouterr().err
