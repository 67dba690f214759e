"""The capture panel: the capture methods with their progress, limits, and controls for single functions."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QCheckBox, QSplitter, QWidget

from ace_studio.gui.panels.capture.controls import ControlsEditor
from ace_studio.gui.panels.capture.method_list import MethodList
from ace_studio.gui.panels.capture.method_rows import capture_summary, method_rows, moved, wants_batch_only
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.fields import DecimalBox
from ace_studio.gui.widgets.flow_layout import Flow
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, MARGIN, button, column, label, quiet, row, scrolling
from ace_studio.gui.words.starting import why_not
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


class CapturePanel(Panel):
    """Capture methods at the left, limits and controls at the right."""

    title = "Capture"
    shows = frozenset({Part.GRAPH, Part.RECIPE, Part.ACTIVITY, Part.TRUST, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the list of methods and the form."""
        super().__init__(session, theme)
        self.methods = MethodList(theme)
        self.methods.switched.connect(self._switch)
        self.methods.move_wanted.connect(self._move)
        self.methods.currentItemChanged.connect(lambda *_: self._show_movable())
        self._summary = label("", "dim")
        self.anew_button = button(
            "Trace anew", lambda: session.jobs.trace(anew=True), tip="Trace although a cached capture fits"
        )
        self.compare_button = button("Compare all methods", lambda: session.jobs.trace(compare_rungs=True))
        self.up_button = button("Earlier", lambda: self._move(self.methods.current, -1), tip="Try it earlier (Alt+Up)")
        self.down_button = button("Later", lambda: self._move(self.methods.current, 1), tip="Try it later (Alt+Down)")
        self.copy_button = button("Copy", self._copy, tip="The methods with their problems as text")
        self.reset_button = button("Usual order", self._reset, tip="All methods, in the order that suits most models")
        self.batch_button = button("Trace with batch only", self._trace_batch_only)
        self.batch_button.setToolTip("A method took too long: keep only the batch dynamic, which is much faster")
        tools = Flow(
            self.batch_button,
            self.compare_button,
            self.anew_button,
            self.up_button,
            self.down_button,
            self.reset_button,
            self.copy_button,
        )
        tools.setContentsMargins(GAP, 6, GAP, 6)
        summary = row(self._summary)
        summary.setContentsMargins(MARGIN, 6, MARGIN, 0)
        left = QWidget()
        layout = column(gap=0)
        layout.addLayout(summary)
        layout.addLayout(tools)
        layout.addWidget(self.methods, 1)
        left.setLayout(layout)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setHandleWidth(1)
        split.addWidget(left)
        split.addWidget(scrolling(self._form()))
        split.setSizes([640, 440])
        split.setChildrenCollapsible(False)
        self.setLayout(column(split))
        self.setFocusProxy(self.methods)

    def _form(self) -> QWidget:
        self.limit = DecimalBox()
        self.limit.setRange(1.0, 86_400.0)
        self.limit.setDecimals(0)
        self.limit.setSuffix(" s")
        self.limit.setAccessibleName("Time limit of each method")
        self.limit.setToolTip("A method that takes longer is stopped, and the next one is tried")
        self.limit.valueChanged.connect(lambda seconds: self._set(time_limit_s=float(seconds)))
        self.batch_only = QCheckBox("Batch only")
        self.batch_only.setToolTip(
            "Only the batch stays dynamic; every other size is fixed. Much faster if several sizes vary"
        )
        self.batch_only.toggled.connect(lambda on: self._set(batch_only=on))
        self.keep = QCheckBox("Keep captures")
        self.keep.setToolTip("An unchanged model with the same inputs and options is not traced again")
        self.keep.toggled.connect(lambda on: self._set(cache=on))
        self.always_compare = QCheckBox("Always compare all methods")
        self.always_compare.setToolTip("Takes longer; the graph is still that of the first method that works")
        self.always_compare.toggled.connect(lambda on: self._set(compare_rungs=on))
        self.controls = ControlsEditor(self.session, self.theme)
        name = label("Time limit of each method", wrap=False)
        name.setBuddy(self.limit)
        content = QWidget()
        content.setLayout(
            column(
                label("Options", "heading"), row(name, self.limit, None), self.batch_only, self.keep,
                self.always_compare, label("Controls", "heading"), self.controls, None, margin=MARGIN, gap=6,
            )
        )  # fmt: skip
        return content

    def update_from(self, document: Document) -> None:
        """Show methods, options and controls."""
        self.methods.show_rows(method_rows(document))
        self._summary.setText(
            capture_summary(document) or "Methods are tried from the top; the first that works is taken."
        )
        capture = document.recipe.capture
        with quiet(self.limit, self.batch_only, self.keep, self.always_compare):
            self.limit.setValue(capture.time_limit_s)
            self.batch_only.setChecked(capture.batch_only)
            self.keep.setChecked(capture.cache)
            self.always_compare.setChecked(capture.compare_rungs)
        self.controls.update_from(document)
        reason = why_not(document)
        for each, tip in (
            (self.compare_button, "Try every method once, to see which work"),
            (self.anew_button, "Trace although a cached capture fits"),
        ):
            each.setEnabled(not reason)
            each.setToolTip(reason or tip)
        self.batch_button.setVisible(wants_batch_only(document) and not reason)
        self.anew_button.setVisible(bool(document.capture and document.capture.cached))
        self._show_movable()

    def restyle(self, colours: Colours) -> None:
        """Use another theme."""
        del colours
        self.methods.restyle()
        self.controls.update_from(self.session.document)

    # --- gestures ---

    def _set(self, **values: float | bool) -> None:
        self.session.choices.set_capture(replace(self.session.document.recipe.capture, **values))

    def _trace_batch_only(self) -> None:
        self._set(batch_only=True)
        self.session.jobs.trace()

    def _switch(self, name: str, is_on: bool) -> None:
        methods = self.session.document.recipe.capture.rungs
        self.session.choices.set_rungs((*methods, name) if is_on else tuple(one for one in methods if one != name))
        # Later, when the tree has finished its edit: a refused change shows the old state again.
        QTimer.singleShot(0, self, self._show_again)

    def _show_again(self) -> None:
        self.methods.show_rows(())
        self.methods.show_rows(method_rows(self.session.document))

    def _move(self, name: str, step: int) -> None:
        self.session.choices.set_rungs(moved(self.session.document.recipe.capture.rungs, name, step))

    def _reset(self) -> None:
        self.session.choices.set_rungs(ALL_CAPTURE_METHODS)

    def _show_movable(self) -> None:
        methods, name = self.session.document.recipe.capture.rungs, self.methods.current
        is_on = name in methods
        self.up_button.setEnabled(is_on and methods[0] != name)
        self.down_button.setEnabled(is_on and methods[-1] != name)
        self.reset_button.setEnabled(methods != ALL_CAPTURE_METHODS)

    def _copy(self) -> None:
        lines = []
        for each in method_rows(self.session.document):
            lines.append(f"{each.name}: {each.words} ({each.seconds}, {each.ops} ops)")
            if each.problem is not None:
                lines.append(each.problem.as_text())
        QApplication.clipboard().setText("\n".join(lines))
