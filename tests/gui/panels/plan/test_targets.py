"""The list of targets to build for. A missing target says why, and how to install it."""

from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt

from ace_studio.gui.panels.plan.forms import BY_NAME


def test_a_target_that_auto_leaves_out_is_not_ticked_and_says_so(desk, int8_plan):
    environment = desk.document.environment
    targets = tuple(replace(one, available=True, reason="", precisions={}) for one in environment.targets)
    targets = tuple(replace(one, is_in_auto=one.name != "aoti") for one in targets)
    desk.session._state.change(environment=replace(environment, targets=targets))
    desk.settle()
    form = int8_plan.targets
    assert form.boxes["inductor"].isChecked()
    assert not form.boxes["aoti"].isChecked()
    assert form._reasons["aoti"].text() == BY_NAME
    desk.bot.mouseClick(form.auto, Qt.MouseButton.LeftButton, pos=QPoint(8, form.auto.height() // 2))
    desk.settle()
    assert "aoti" not in desk.document.recipe.targets.names
    box = form.boxes["aoti"]
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert "aoti" in desk.document.recipe.targets.names
    assert form._reasons["aoti"].text() == ""


def test_a_target_that_can_only_be_saved_here_says_so(desk, int8_plan):
    environment = desk.document.environment
    why = "Core ML runs only on macOS; open the package there"
    saved = replace(environment.targets[0], name="coreml", available=True, precisions={}, is_in_auto=False, not_run=why)
    desk.session._state.change(environment=replace(environment, targets=(saved,)))
    desk.settle()
    form = int8_plan.targets
    assert not form.boxes["coreml"].isChecked() and form._reasons["coreml"].text() == why


def test_before_the_engine_has_reported_auto_ticks_what_the_rows_say(desk, int8_plan):
    environment = desk.document.environment
    desk.session._state.change(environment=replace(environment, targets=()))
    desk.settle()
    boxes = int8_plan.targets.boxes
    assert {name for name in boxes if not boxes[name].isChecked()} == {"aoti"}


def test_targets_that_are_missing_are_grey_and_say_why(desk, example_plan):
    example_plan.targets.auto.click()
    desk.settle()
    missing = [report for report in desk.document.environment.targets if not report.available]
    assert missing
    for report in missing:
        assert not example_plan.targets.boxes[report.name].isEnabled()
        assert report.reason in example_plan.targets._reasons[report.name].text()


def test_targets_are_chosen_one_by_one(desk, example_plan):
    example_plan.targets.auto.click()
    desk.settle()
    for name, box in example_plan.targets.boxes.items():
        if name != "onnxruntime" and box.isChecked():
            box.click()
    desk.settle()
    assert desk.document.recipe.targets.names == ("onnxruntime",)
