"""The controls of the capture."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QToolButton

from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.records.results import Warning
from tests.gui.capturing import LEFT, report
from tests.gui.graph_tables import layered_table


def test_a_control_is_typed_with_the_names_of_the_file_offered_and_removed_again(desk):
    desk.captured(layered_table(3), report(), text="def pick(x):\n    return x\nclass Net:\n    def go(self): ...\n")
    capture_panel = desk.panel("capture")
    editor = capture_panel.controls
    assert {"net:pick", "net:Net", "net:Net.go"} <= set(editor._names.stringList())
    assert not editor.add_button.isEnabled()
    editor.function.setText("net:pick")  # typing would open the list of names, for which this screen has no keyboard
    editor.kind.setCurrentIndex(editor.kind.findText("fx_wrap"))
    desk.bot.mouseClick(editor.add_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.controls == (CaptureControl(function="net:pick", treat_as=ControlKind.FX_WRAP),)
    assert editor.function.text() == ""
    remove = next(
        one for one in editor.findChildren(QToolButton) if one.accessibleName() == "Remove fx_wrap for net:pick"
    )
    desk.bot.mouseClick(remove, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.controls == ()
    desk.do("undo")
    assert len(desk.document.recipe.capture.controls) == 1


def test_a_control_that_did_nothing_is_warned_of_beside_it(desk):
    idle = Warning(code="idle-control", what="The control net:pick as leaf did nothing: fx was not tried")
    desk.captured(layered_table(3), report(warnings=(idle,)))
    desk.session.choices.add_control(CaptureControl(function="net:pick", treat_as=ControlKind.LEAF))
    desk.session.choices.add_control(CaptureControl(function="net:other", treat_as=ControlKind.LEAF))
    capture_panel = desk.panel("capture")
    warned = [one.text() for one in capture_panel.controls.findChildren(QLabel) if one.text().startswith("⚠")]
    assert warned == ["⚠ The control net:pick as leaf did nothing: fx was not tried"]
