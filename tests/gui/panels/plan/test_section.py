"""A heading that folds its content; while folded, it summarises the choices."""

from PySide6.QtCore import Qt


def test_a_folded_section_says_what_is_chosen_in_it_and_stays_folded(desk, layered_plan):
    section = layered_plan.sections["Goal"]
    desk.bot.mouseClick(section.head, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not layered_plan.goal.isVisible()
    assert "best latency" in section._summary.text()
    assert desk.session.settings.recall("section-Goal") is False
    desk.bot.keyClick(section.head, Qt.Key.Key_Space)
    assert layered_plan.goal.isVisible()
