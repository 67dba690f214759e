"""The targets of a process: made from their rows when they are asked for, and selected by the names of a recipe."""

import pytest

from ace_studio.engine.targets import TARGETS, select_targets
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.targets import TARGET_ROWS, TargetRow

ONE_FILE = """
from ace_studio.engine.targets.torch.eager import EagerTarget


class Mine(EagerTarget):
    pass
"""


def test_a_target_is_made_once():
    assert TARGETS["eager"] is TARGETS["eager"]
    assert TARGETS["eager"].row is TARGET_ROWS["eager"]


def test_a_target_may_lie_in_a_file_of_its_own(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(ONE_FILE, encoding="utf-8")
    monkeypatch.setitem(TARGET_ROWS, "mine", TargetRow(name="mine", label="Mine", implementation=f"{path}:Mine"))
    assert TARGETS["mine"].label == "Mine"
    assert TARGETS["mine"].available().ok
    assert "mine" in [target.name for target in select_targets(["auto"])]


def test_auto_and_a_name_select_each_target_once():
    names = [target.name for target in select_targets(["eager", "auto", "aoti"])]
    assert names[0] == "eager"
    assert names[-1] == "aoti"
    assert len(set(names)) == len(names)


def test_an_unknown_target_is_named_with_the_choices():
    with pytest.raises(AceError, match="no target named 'tpu'") as caught:
        select_targets(["tpu"])
    assert caught.value.problem.code is ErrorCode.USAGE
    assert "onnxruntime" in caught.value.problem.remedy


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(monkeypatch):
    row = TargetRow(
        name="far", label="Far", packages=("no_such_package_here",), install="pip install it",
        implementation="ace_studio.engine.targets.torch.torchao_cuda:TorchaoCudaTarget",
    )  # fmt: skip
    monkeypatch.setitem(TARGET_ROWS, "far", row)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    found = TARGETS["far"].available()
    assert (found.ok, found.reason, found.install) == (False, "not installed: no_such_package_here", "pip install it")
    with pytest.raises(AceError) as caught:
        TARGETS["far"].require()
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert caught.value.problem.remedy == "pip install it"
