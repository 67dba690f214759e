"""The forms of model and plan, the palette, the settings, the help: every gesture is a verb of the session."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from ace_studio.gui.dialogs.about import about_text
from ace_studio.gui.dialogs.help import HelpDialog, help_pages
from ace_studio.gui.dialogs.settings import SettingsDialog
from ace_studio.gui.shell.actions import ACTIONS, MENUS
from ace_studio.gui.shell.palette import CommandPalette, match_rank
from ace_studio.gui.style.icons import _STROKES
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.kept.settings import SETTINGS


@pytest.fixture
def plan(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    return desk.panel("plan")


def choose(desk, combo, text):
    """Choose a row of a combo box by the keyboard, as a person would."""
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())
    desk.settle()


def test_the_default_precision_is_chosen_and_ends_planning_from_the_goal(desk, plan):
    choose(desk, plan.precision.default, "bf16")
    assert desk.document.recipe.plan.default is Precision.BF16
    choose(desk, plan.precision.default, "found from the goal")
    assert desk.document.recipe.plan.from_goal


def test_a_goal_is_shown_in_percent_and_kept_as_a_fraction(desk, plan):
    number = plan.goal.numbers["max_drop"]
    assert number.value() == pytest.approx(1.0)
    number.setValue(2.5)
    desk.settle()
    assert desk.document.recipe.goal.max_drop == pytest.approx(0.025)


def test_a_bound_that_is_switched_off_is_gone(desk, plan):
    plan.goal.checks["max_drop"].click()
    desk.settle()
    assert desk.document.recipe.goal.max_drop is None
    assert not plan.goal.numbers["max_drop"].isEnabled()


def test_targets_that_are_missing_are_grey_and_say_why(desk, plan):
    plan.targets.auto.click()
    desk.settle()
    missing = [report for report in desk.document.environment.targets if not report.available]
    assert missing
    for report in missing:
        assert not plan.targets.boxes[report.name].isEnabled()
        assert report.reason in plan.targets._reasons[report.name].text()


def test_targets_are_chosen_one_by_one(desk, plan):
    plan.targets.auto.click()
    desk.settle()
    for name in ("eager", "inductor", "openvino"):
        if plan.targets.boxes[name].isChecked():
            plan.targets.boxes[name].click()
    desk.settle()
    assert desk.document.recipe.targets.names == ("onnxruntime",)


def test_threads_rounds_and_device_are_one_choice_for_all_targets(desk, plan):
    plan.measure.threads.setValue(0)
    plan.measure.rounds.setValue(50)
    choose(desk, plan.measure.device, "CPU")
    measure = desk.document.recipe.measure
    assert (measure.threads, measure.rounds, measure.device) == ("all", 50, "cpu")


def test_the_model_panel_offers_the_callables_of_the_file(desk):
    desk.open_example()
    panel = desk.panel("model")
    offered = [panel.entry.itemData(at) for at in range(panel.entry.count())]
    assert "make_model" in offered
    choose(desk, panel.evaluate, "nothing: compare outputs")
    assert desk.document.recipe.evaluate.function == ""


def test_undo_takes_a_choice_of_the_form_back_and_the_form_shows_it(desk):
    desk.open_example()
    panel = desk.panel("model")
    choose(desk, panel.calibration, "the examples to trace with")
    desk.do("undo")
    assert panel.calibration.currentData() == "calibration_inputs"


def test_calibration_inputs_come_from_a_file_or_a_folder_of_images(desk, monkeypatch):
    desk.traced()
    panel, folder = desk.panel("model"), desk.document.folder
    buttons = {one.accessibleName(): one for one in panel.findChildren(QPushButton)}
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (f"{folder}/seen.npz", ""))
    desk.bot.mouseClick(buttons["Calibration inputs from a file"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.calibration.inputs == "seen.npz"
    assert panel.calibration.currentText() == "seen.npz"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: f"{folder}/pictures")
    desk.bot.mouseClick(buttons["Calibration inputs from a folder of images"], Qt.MouseButton.LeftButton)
    assert desk.document.recipe.calibration.inputs == "pictures/"


def test_the_palette_does_what_is_typed(desk):
    desk.traced()
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "theme light")
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    desk.settle()
    assert desk.session.settings.get("theme") == "light"


def test_esc_ends_the_palette_and_nothing_else(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentRow() == 1
    desk.bot.keyClick(palette.field, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.window.findChild(CommandPalette) is None
    assert desk.engine.cancelled == []


def test_the_palette_offers_only_what_can_be_done_now(desk):
    words = [text for text, _ in desk.window.actions_.palette_entries()]
    assert "File: Open" in words
    assert not any(text.startswith("Engine: Run") for text in words)


def test_words_rank_before_letters_spread_over_them():
    assert match_rank("run", "Engine: Run") < match_rank("run", "Engine: prune")
    assert match_rank("run", "Engine: prune") < match_rank("run", "Restart under")
    assert match_rank("xyz", "Run") is None


def test_actions_have_ids_of_their_own_known_menus_icons_and_no_shortcut_twice():
    ids = [row.id for row in ACTIONS]
    shortcuts = [row.shortcut for row in ACTIONS if row.shortcut]
    assert len(set(ids)) == len(ids)
    assert len(set(shortcuts)) == len(shortcuts)
    assert {row.menu for row in ACTIONS} <= set(MENUS)
    assert {row.icon for row in ACTIONS if row.icon} <= set(_STROKES)


def test_the_settings_dialog_has_an_editor_per_row_and_changes_hold_at_once(desk, qtbot):
    dialog = SettingsDialog(desk.session)
    qtbot.addWidget(dialog)
    assert set(dialog.editors) == set(SETTINGS)
    assert all(editor.accessibleName() for editor in dialog.editors.values())
    dialog.editors["theme"].setCurrentIndex(SETTINGS["theme"].choices.index("light"))
    assert desk.session.settings.get("theme") == "light"
    dialog.editors["log_lines"].setValue(500)
    assert desk.session.settings.get("log_lines") == 500


def test_a_link_of_the_help_opens_the_other_page(desk, qtbot):
    dialog = HelpDialog(desk.window.theme)
    qtbot.addWidget(dialog)
    pages = help_pages()
    assert dialog.contents.count() == len(pages)
    assert dialog.browser.toPlainText()
    dialog._follow(type(dialog.browser.source())(pages[-1].name))
    assert dialog.contents.currentRow() == len(pages) - 1


def test_about_names_the_versions_of_window_and_engine(desk):
    assert "has not said" in about_text(None)
    desk.traced()
    desk.session.jobs.request_environment()
    assert f"torch {desk.document.environment.versions['torch']}" in about_text(desk.document.environment)


def test_code_and_command_follow_the_choices_and_can_be_copied(desk):
    desk.traced()
    panel = desk.panel("code")
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "bf16" in panel.python.toPlainText()
    assert "ace-studio run" in panel.command.toPlainText()
    desk.bot.mouseClick(panel.python.parentWidget().findChild(QPushButton), Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text().strip() == panel.python.toPlainText().strip()


def test_everything_that_takes_the_keyboard_has_a_name(desk):
    desk.ran()
    nameless = []
    for row_id in (
        "model",
        "plan",
        "modules",
        "shapes",
        "ops",
        "source",
        "run",
        "results",
        "charts",
        "advice",
        "problems",
        "code",
    ):
        panel = desk.panel(row_id)
        for widget in panel.findChildren(object):
            kind = type(widget).__name__
            if kind in {
                "QComboBox",
                "QSpinBox",
                "QDoubleSpinBox",
                "QLineEdit",
                "QTableView",
                "QTreeWidget",
                "ShapeTable",
            }:
                inside_another = kind == "QLineEdit" and type(widget.parent()).__name__ in {
                    "QComboBox",
                    "QSpinBox",
                    "QDoubleSpinBox",
                }
                if not widget.accessibleName() and not inside_another:
                    nameless.append((row_id, kind))
    assert nameless == []
