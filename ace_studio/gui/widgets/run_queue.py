"""The runs that were asked for, in their order: one goes on, others wait and can be moved or taken out."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from ace_studio.gui.widgets.small import GAP, button, column, quiet, row
from ace_studio.gui.words.formatting import plural, seconds_text
from ace_studio.session.comparison.figures import recipe_changes
from ace_studio.session.document import Document, QueuedRun, QueueState
from ace_studio.session.run_preview import RunPreview
from ace_studio.session.session import Session

_ID = int(Qt.ItemDataRole.UserRole)


class RunQueue(QWidget):
    """A list with buttons; hidden unless something waits, or several runs were asked for."""

    def __init__(self, session: Session) -> None:
        """Start empty."""
        super().__init__()
        self._session = session
        self._shown: tuple[QueuedRun, ...] = ()
        self.list = QListWidget()
        self.list.setAccessibleName("Queue of runs")
        self.list.currentItemChanged.connect(lambda *_: self._show_buttons())
        self.up = button("Earlier", lambda: session.jobs.move_queued(self._chosen(), -1))
        self.down = button("Later", lambda: session.jobs.move_queued(self._chosen(), 1))
        self.remove = button("Remove", lambda: session.jobs.unqueue(self._chosen()))
        line = row(self.list, column(self.up, self.down, self.remove, None, gap=4), gap=GAP)
        line.setContentsMargins(GAP, 0, GAP, GAP)
        line.setStretch(0, 1)
        self.setLayout(line)
        self.setFixedHeight(4 * self.fontMetrics().height() + 66)
        self.hide()

    def update_from(self, document: Document) -> None:
        """Show the queue."""
        queue = document.queue
        self.setVisible(len(queue) > 1)
        if queue is self._shown:
            return
        chosen, self._shown = self._chosen(), queue
        with quiet(self.list):
            self.list.clear()
            for at, one in enumerate(queue):
                item = QListWidgetItem(f"{at + 1}.  {one.state}:  {_words(one)}")
                item.setData(_ID, one.id)
                changes = recipe_changes(queue[at - 1].recipe, one.recipe) if at else ()
                item.setToolTip("\n".join(f"{each.name}: {each.first} → {each.second}" for each in changes))
                self.list.addItem(item)
                if one.id == chosen:
                    self.list.setCurrentItem(item)
        self._show_buttons()

    def _chosen(self) -> int:
        """Id of the chosen run; 0 if none is."""
        item = self.list.currentItem()
        return int(item.data(_ID)) if item is not None else 0

    def _show_buttons(self) -> None:
        at = self.list.currentRow()
        waits = [one.state is QueueState.WAITING for one in self._shown]
        is_own = 0 <= at < len(waits) and waits[at]
        self.remove.setEnabled(is_own)
        self.up.setEnabled(is_own and at > 0 and waits[at - 1])
        self.down.setEnabled(is_own and at + 1 < len(waits) and waits[at + 1])


def preview_words(preview: RunPreview) -> str:
    """``Run builds 1 plan for 2 targets (a, b): 2 builds. About 1:50, by the last run of this model.``."""
    names = f"{plural(len(preview.targets), 'target')} ({', '.join(preview.targets)})"
    where = names if preview.targets else "the targets there are"
    what = "Run searches for plans that meet the goal" if preview.is_searched else "Run builds 1 plan"
    count = f": {'about ' if preview.is_searched else ''}{plural(preview.builds, 'build')}" if preview.builds else ""
    if preview.seconds is None:
        return f"{what} for {where}{count}. No earlier run of this model says how long it takes."
    return f"{what} for {where}{count}. About {seconds_text(preview.seconds)}, by the last run of this model."


def _words(run: QueuedRun) -> str:
    plan, targets = run.recipe.plan, ", ".join(run.recipe.targets.names)
    what = "plans found from the goal" if plan.from_goal else plan.label
    rules = f", {plural(len(plan.rules), 'rule')}" if plan.rules else ""
    return f"{what}{rules}, {targets}"
