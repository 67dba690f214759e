"""The line of steps under the toolbar: what is done, and the one thing to do next."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QMenu, QSizePolicy, QToolButton

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import HAIR, MARGIN, TIGHT, row
from ace_studio.gui.widgets.small import ElidedLabel, set_role, tip_text
from ace_studio.gui.words.steps import NextStep, StepState, steps_of
from ace_studio.session.document import Document

_MARKS = {StepState.DONE: "✓ ", StepState.WORKING: "… "}
_WIDE_PX = 900
"""With less beside the steps a sentence would be a few letters."""


class StepLine(QFrame):
    """One button per step; the next one stands out, and its sentence stands beside it."""

    def __init__(
        self, actions: Mapping[str, Callable[[], object]], menus: Mapping[str, Sequence[QAction]] | None = None
    ) -> None:
        """Make the buttons.

        Args:
            actions: Step -> what its button does.
            menus: Step -> other ways to take it.
        """
        super().__init__()
        self.setProperty("role", "steps")
        self.setAccessibleName(tr("Steps from the model to the artifact"))
        self._steps: tuple[NextStep, ...] = ()
        self.buttons: dict[str, QToolButton] = {}
        self._arrows: list[QLabel] = []
        self._layout = row(margin=(MARGIN, TIGHT, MARGIN, TIGHT), gap=HAIR)
        self.setLayout(self._layout)
        for step, action in actions.items():
            self._add(step, action, (menus or {}).get(step, ()))
        self._sentence = ElidedLabel(role="dim")
        self._sentence.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._layout.addSpacing(MARGIN)
        self._layout.addWidget(self._sentence, 1)
        self.hide()

    def _add(self, step: str, action: Callable[[], object], others: Sequence[QAction]) -> None:
        if self.buttons:
            arrow = QLabel("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}")
            arrow.setProperty("role", "dim")
            self._arrows.append(arrow)
            self._layout.addWidget(arrow)
        made = QToolButton()
        made.clicked.connect(lambda _=False: action())
        if others:
            menu = QMenu(made, toolTipsVisible=True)
            menu.addActions(others)
            made.setMenu(menu)
            made.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        self.buttons[step] = made
        self._layout.addWidget(made)

    def update_from(self, document: Document) -> None:
        """Show where every step stands."""
        steps = steps_of(document)
        if steps == self._steps:
            return
        if bool(steps) != bool(self._steps):
            self.setVisible(bool(steps))
        self._steps = steps
        for step in steps:
            self._show(self.buttons[step.id], step)
        following = next((step for step in steps if step.state in (StepState.NEXT, StepState.WORKING)), None)
        self._sentence.setText(following.why if following is not None else "")
        self._fit()

    def _show(self, made: QToolButton, step: NextStep) -> None:
        made.setEnabled(step.state is not StepState.BLOCKED)
        made.setToolTip(tip_text(step.why))
        made.setAccessibleName(f"{step.title}: {tr(step.state)}. {step.why}")
        set_role(made, "primary" if step.state is StepState.NEXT else "fold")

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """In a narrow window there is room for the steps alone."""
        super().resizeEvent(event)
        self._sentence.setVisible(self.width() >= _WIDE_PX)
        self._fit()

    def _fit(self) -> None:
        """Show as much as there is room for: all steps with arrows, without, then marks of those done.

        The sentence takes what is left: if its length had a say, the steps would move whenever it changes.
        """
        for has_arrows, is_short in ((True, False), (False, False), (False, True)):
            for arrow in self._arrows:
                arrow.setVisible(has_arrows)
            for step in self._steps:
                self._keep_room(self.buttons[step.id], "" if is_short else step.title)
                is_mark = is_short and step.state is StepState.DONE
                mark = _MARKS.get(step.state, "")
                self.buttons[step.id].setText(mark.strip() if is_mark else f"{mark}{step.title}")
            self._layout.invalidate()
            if self._layout.minimumSize().width() <= self.width():
                return

    def _keep_room(self, made: QToolButton, title: str) -> None:
        """Leave room for the title with any mark, so that no step moves when another one is done."""
        made.setMinimumWidth(0)
        widest = 0
        for mark in _MARKS.values() if title else ():
            made.setText(f"{mark}{title}")
            widest = max(widest, made.sizeHint().width())
        made.setMinimumWidth(widest)
