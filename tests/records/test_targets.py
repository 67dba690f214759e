"""The rows of the targets, and how one more is added from outside."""

import shlex
import subprocess
import sys
import tomllib

import pytest

from ace_studio.records.recipes.plan import Precision
from ace_studio.records.targets import ROWS_VARIABLE, TARGET_ROWS, TargetRow, register, targets_for

ROW = TargetRow(
    name="other", label="Other", implementation="other.py:Other", matrix_speedups={Precision.INT8_STATIC: 3.0}
)


@pytest.fixture(autouse=True)
def _only_for_this_test(monkeypatch):
    monkeypatch.setenv(ROWS_VARIABLE, "[]")
    yield
    TARGET_ROWS.pop(ROW.name, None)


def test_every_row_is_found_by_its_own_name():
    assert all(row.name == name and row.label and ":" in row.implementation for name, row in TARGET_ROWS.items())


def test_every_line_that_installs_has_all_packages_in_the_versions_of_the_project(root):
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"].values()
    known = {requirement for extra in extras for requirement in extra}
    for row in TARGET_ROWS.values():
        _, _, *asked = shlex.split(row.install) if row.install.startswith("pip install ") else ["", ""]
        assert {one for one in asked if not one.startswith("tensorrt")} <= known, row.name
        if row.name not in {"executorch", "litert"}:  # one package there brings the others
            assert {one.partition(">")[0] for one in asked} == set(row.packages), row.name


def test_a_registered_row_is_the_last_one_and_may_be_registered_again():
    register(ROW)
    register(ROW)
    assert list(TARGET_ROWS)[-1] == ROW.name
    assert TARGET_ROWS[ROW.name] == ROW


def test_a_name_that_another_target_has_is_refused():
    with pytest.raises(ValueError, match="there is a target named 'eager'"):
        register(TargetRow(name="eager", label="Mine", implementation="mine.py:Mine"))
    assert TARGET_ROWS["eager"].label == "PyTorch eager"


def test_a_process_that_is_started_after_it_knows_the_row():
    register(ROW)
    code = "from ace_studio.records.targets import TARGET_ROWS; print(TARGET_ROWS['other'].matrix_speedups)"
    assert "INT8_STATIC" in subprocess.check_output([sys.executable, "-c", code], text=True)


def test_only_targets_that_read_onnx_take_an_onnx_file():
    assert targets_for("onnx") == ("onnxruntime", "openvino")
    assert targets_for("torch") == tuple(TARGET_ROWS)


def test_a_typical_speed_up_depends_on_the_kind_of_model():
    row = TARGET_ROWS["openvino"]
    assert row.typical_speedup("int8-static", is_convolutional=True) == 5.3
    assert row.typical_speedup("int8-static", is_convolutional=False) == 3.4
    assert row.typical_speedup("fp8", is_convolutional=True) is None
