"""The question before the window closes and ends work that has taken a while."""

import time

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.small import MARGIN, button, label
from ace_studio.gui.words.formatting import seconds_text
from ace_studio.session.document import Document, JobKind, Part, QueueState
from ace_studio.session.session import Session

ASKED_AFTER_S = 5.0
"""What has gone on for less is soon done again."""


def work_words(document: Document) -> str:
    """What closing the window would end, and what stays of it; empty if that is worth no question."""
    activity, sweep = document.activity, document.sweep
    now_s = time.monotonic()
    if sweep.is_running and now_s - sweep.started_s > ASKED_AFTER_S:
        return tr(
            "A sweep has gone on for {time}. Closing the window stops it; Continue takes it up again.",
            time=seconds_text(now_s - sweep.started_s),
        )
    if not activity.is_working or now_s - activity.started_s <= ASKED_AFTER_S:
        return ""
    spent = seconds_text(now_s - activity.started_s)
    if activity.verb is not JobKind.RUN:
        return tr("The engine has worked for {time}. Closing the window ends that.", time=spent)
    words = tr(
        "A run has gone on for {time}. Closing the window ends it: the history keeps what was measured.", time=spent
    )
    waits = any(one.state is QueueState.WAITING for one in document.queue)
    return f"{words} {tr('The runs that wait do not start.')}" if waits else words


class LeaveDialog(QDialog):
    """Go on, which Return and Esc mean too, or close the window. It closes itself when the work has ended."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        """``accepted`` is the signal to close the window."""
        super().__init__(parent, modal=True)
        self.setWindowTitle(tr("Close the window?"))
        self.setProperty("help", "window#run")
        self.words = label(work_words(session.document))
        self.words.setMinimumWidth(360)
        self.stay_button = button(tr("Keep it open"), self.reject, role="primary")
        self.stay_button.setDefault(True)
        self.close_button = button(tr("Close the window"), self.accept)
        self.setLayout(column(self.words, row(None, self.close_button, self.stay_button), margin=MARGIN))
        unsubscribe = session.subscribe(self._follow)
        self.finished.connect(lambda _: unsubscribe())
        self.stay_button.setFocus()

    def _follow(self, document: Document, parts: frozenset[Part]) -> None:
        if parts & {Part.ACTIVITY, Part.SWEEP} and not work_words(document):
            self.reject()
