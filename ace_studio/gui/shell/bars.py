"""Bars under the toolbar: messages and decisions that do not block the window."""

from collections.abc import Callable
from datetime import datetime
from pathlib import PurePath

from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QWidget

from ace_studio.gui.shell.start_page import PackInstaller
from ace_studio.gui.style import Theme, number, stroke_icon, stroke_pixmap, told, tr
from ace_studio.gui.widgets.layouts import CLOSE, MARGIN, column, row
from ace_studio.gui.widgets.small import ElidedLabel, button, label, tool_button
from ace_studio.gui.words.formatting import run_text, sentence
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document, JobKind
from ace_studio.session.kept.autosave import SavedChoices
from ace_studio.session.run_warnings import is_told
from ace_studio.session.session import Session


class Bar(QFrame):
    """One line with an icon, a headline, a sentence and buttons."""

    def __init__(self, theme: Theme, *, mood: str, icon: str, closable: Callable[[], object] | None = None) -> None:
        """Start hidden. ``mood`` is info, warn or bad."""
        super().__init__()
        self._theme, self._mood, self._icon = theme, mood, icon
        self.setProperty("bar", mood)
        self._picture = QLabel()
        self._headline = label("", wrap=False, strong=True)
        self._sentence = ElidedLabel()
        self._sentence.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        parts = (self._picture, self._headline, self._sentence)
        self._layout = row(*parts, margin=(MARGIN, CLOSE, MARGIN, CLOSE), stretch=2)
        self.setLayout(self._layout)
        self._close = tool_button(tr("Dismiss"), closable) if closable is not None else None
        if self._close is not None:
            self._layout.addWidget(self._close)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def add_button(self, text: str, action: Callable[[], object], *, role: str = "") -> QPushButton:
        """A button at the end of the line."""
        made = button(text, action, role=role)
        self._layout.insertWidget(self._layout.count() - bool(self._close), made)
        return made

    def say(self, headline: str, sentence: str = "") -> None:
        """Show the bar with these words."""
        self._headline.setText(headline)
        self._sentence.setText(sentence)
        self.setAccessibleName(f"{headline}. {sentence}")
        self.show()

    def _restyle(self, *_: object) -> None:
        colours = self._theme.colours
        colour = {"info": colours.accent, "warn": colours.warn, "bad": colours.bad}[self._mood]
        self._picture.setPixmap(stroke_pixmap(self._icon, colour, size=18, pixel_ratio=self.devicePixelRatioF()))
        if self._close is not None:
            self._close.setIcon(stroke_icon("close", colours.text_dim, colours.text_dim))


class Bars(QWidget):
    """All bars, one row per reason; each decides from the document whether it shows."""

    def __init__(
        self,
        session: Session,
        theme: Theme,
        installer: PackInstaller,
        *,
        show_panel: Callable[[str], object],
        install_engine: Callable[[], object],
    ) -> None:
        super().__init__()
        self._session = session
        self._offered: SavedChoices | None = None
        self._dismissed: object = None
        self._shown_problem: object = None
        self._hidden_stale: object = None
        self.restore = Bar(theme, mood="info", icon="undo", closable=self._forget_restore)
        self.restore.add_button(tr("Restore"), self._restore, role="primary")
        self.problem = Bar(theme, mood="bad", icon="bad", closable=self._dismiss)
        self._details = self.problem.add_button(tr("Details"), lambda: show_panel("problems"))
        self.install_button = self.problem.add_button(tr("Install the engine…"), install_engine, role="primary")
        self.install = Bar(theme, mood="info", icon="info")
        self.install.add_button(tr("Cancel"), installer.ask_to_stop)
        installer.told.connect(self._show_install)
        installer.finished.connect(self.install.hide)
        self.past = Bar(theme, mood="info", icon="clock")
        self.past.add_button(tr("Back to the present"), session.history.leave_past_run, role="primary")
        self.pins = Bar(theme, mood="info", icon="table")
        self._difference = self.pins.add_button(tr("Show the difference"), session.comparing.toggle, role="primary")
        self.pins.add_button(tr("Swap"), session.comparing.swap)
        self.pins.add_button(tr("Clear"), session.comparing.clear)
        self.stale = Bar(theme, mood="info", icon="info", closable=self._hide_stale)
        self.stale.add_button(tr("Run again"), session.jobs.run)
        self.ended = Bar(theme, mood="info", icon="info", closable=self._hide_ended)
        self._left_running: Document | None = None
        """What was shown when another model was about to be opened, if a run was going on."""
        bars = (self.restore, self.ended, self.past, self.pins, self.install, self.problem, self.stale)
        self.setLayout(column(*bars, gap=0))

    def offer_restore(self) -> None:
        """Offer to restore the unsaved choices of a window that has ended."""
        saved = self._session.files.restorable()
        if saved:
            self._offer(saved[0], tr("A window ended with unsaved choices"))

    def offer_return(self) -> None:
        """Offer to restore the unsaved choices of the present model, before another one is opened."""
        self._session.history.leave_past_run()
        document = self._session.document
        is_running = document.activity.is_working and document.activity.verb is JobKind.RUN
        self._left_running = document if is_running else None
        self.ended.hide()
        unsaved = self._session.files.unsaved()
        if unsaved is not None:
            self._offer(unsaved, tr("Choices were left unsaved"))

    def _offer(self, saved: SavedChoices, headline: str) -> None:
        name = PurePath(saved.recipe_path or saved.recipe.model.source).name
        self._offered = saved
        self.restore.say(headline, tr("Recipe of {name}", name=name or tr("a model")))

    def update_from(self, document: Document) -> None:
        """Show the bars that the document asks for."""
        if self._offered is not None and self._offered.recipe == document.recipe:
            self.restore.hide()  # they came back by themselves
        left = self._left_running
        if left is not None and (left.folder, left.recipe.model) != (document.folder, document.recipe.model):
            self._left_running = None
            words = tr("Another model was opened; the history has what was measured until then")
            self.ended.say(tr("The run of {name} was cancelled", name=left.title), words)
        if document.past is not None:
            when = datetime.fromisoformat(document.past.date).astimezone()
            words = ": ".join(filter(None, (document.past.name, run_text(document.past))))
            self.past.say(
                tr("Run of {when:%Y-%m-%d %H:%M}", when=when),
                tr("{summary}. Nothing can be changed here", summary=words),
            )
        self.past.setVisible(document.past is not None)
        self._update_pins(document)
        self._update_problem(document)
        is_stale = bool(document.runs) and document.is_stale and not document.activity.is_working
        if is_stale and self._hidden_stale is not document.recipe:
            self.stale.say(tr("The results are from earlier choices"), tr("Run again to measure the new choices"))
        else:
            self.stale.hide()

    def _update_pins(self, document: Document) -> None:
        if not any(document.pins):
            self.pins.hide()
            return
        is_shown = document.comparison is not None
        self._difference.setText(tr("Back to the present") if is_shown else tr("Show the difference"))
        self._difference.setVisible(all(document.pins))
        first, second = (pin.name if pin else tr("nothing yet") for pin in document.pins)
        *sides, both = beside_words(first, second)
        words = [f"{name}: {words}" for name, words in zip(NAMES, sides, strict=True)]
        if both:
            words.append(tr("both: {words}", words=both))
        self.pins.say(tr("A and B") if is_shown else tr("Pinned"), "    ".join(words))

    def _update_problem(self, document: Document) -> None:
        on_graph = document.failure.problems if document.failure is not None else ()  # a card at the place says it
        shown = [problem for problem in document.problems if is_told(problem) and problem not in on_graph]
        newest = self._shown_problem = shown[-1] if shown else None
        is_open, missing = bool(document.recipe.model.source), document.activity.missing_engine
        if newest is None or newest is self._dismissed or (newest == missing and not is_open):  # the start page says it
            self.problem.hide()
            return
        # Without an open model there is no Problems panel.
        self._details.setVisible(is_open)
        self.install_button.setVisible(newest == missing)
        everything = " ".join(sentence(told(part)) for part in (newest.why, newest.remedy) if part)
        self.problem.say(told(newest.what), everything)

    def _show_install(self, progress: tuple[str, float]) -> None:
        step, fraction = progress
        if self._session.document.recipe.model.source:  # else the start page shows it
            self.install.say(tr("Installing the engine"), f"{step}: {number(fraction, '.0%')}")

    def _dismiss(self) -> None:
        self._dismissed = self._shown_problem
        self.problem.hide()

    def _hide_stale(self) -> None:
        self._hidden_stale = self._session.document.recipe
        self.stale.hide()

    def _hide_ended(self) -> None:
        self.ended.hide()

    def _restore(self) -> None:
        self.restore.hide()
        if self._offered is not None:
            self._session.files.restore(self._offered)
            self._offered = None

    def _forget_restore(self) -> None:
        self._session.files.decline_restorable()
        self.restore.hide()


def beside_words(first: str, second: str) -> tuple[str, str, str]:
    """What only the first and only the second name says, and what both say: part by part, as commas divide them.

    ``net.py, openvino fp32, 2026-11-26 01:50`` beside ``net.py, openvino int8-dynamic, 2026-11-26 01:54`` is
    ``fp32, 01:50``, ``int8-dynamic, 01:54`` and ``net.py, openvino, 2026-11-26``.
    """
    parts = first.split(", "), second.split(", ")
    if first == second or len(parts[0]) != len(parts[1]):
        return first, second, ""
    alone, others_alone, shared = [], [], []
    for one, other in zip(*parts, strict=True):
        words, others = one.split(), other.split()
        most = len(words) if one == other else max(0, min(len(words), len(others)) - 1)
        same = next((at for at in range(most) if words[at] != others[at]), most)
        alone.append(" ".join(words[same:]))
        others_alone.append(" ".join(others[same:]))
        shared.append(" ".join(words[:same]))
    return ", ".join(filter(None, alone)), ", ".join(filter(None, others_alone)), ", ".join(filter(None, shared))
