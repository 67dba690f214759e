"""The start page: drop a model, open one, or try the example; its card installs an engine pack, by a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QWidget

from ace_studio.gui.style import Colours, Theme, number, stroke_pixmap, told, tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, box, clear_layout, column, row
from ace_studio.gui.widgets.small import ElidedLabel, ProgressBar, allow, button, label, set_property
from ace_studio.gui.widgets.work_thread import Started, Tell, WorkThread
from ace_studio.records.errors import Problem, one_line
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.jobs.pack_install import Consent, PackOffer, Report

_WIDTH = 620
_STEPS = (
    tr("Open a PyTorch model: a .py file with a function that makes it, weights, or an exported program."),
    tr("Trace it to see the graph, the dynamic sizes, and the line of your code behind every op."),
    tr("Choose a precision, or a limit for the loss of accuracy. Run measures every target and picks the best."),
)


class StartPage(QWidget):
    """What the window shows while nothing is open."""

    def __init__(
        self,
        session: Session,
        theme: Theme,
        *,
        open_dialog: Callable[[], object],
        open_example: Callable[[], object],
        start_tour: Callable[[], object],
        engine_card: QWidget,
    ) -> None:
        super().__init__(accessibleName=tr("Start"))
        self._session = session
        self._picture = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._drop = QFrame()
        self._drop.setProperty("role", "drop")
        headline = label(tr("Drop a model here"), "title")
        headline.setAlignment(Qt.AlignmentFlag.AlignCenter)
        kinds = label(tr(".py   .pt   .pth   .safetensors   .pt2   .onnx   or a recipe .toml"), "dim")
        kinds.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.open_button = button(tr("Open a model…"), open_dialog, role="primary")
        self.example_button = button(tr("Open the example"), open_example)
        buttons = row(None, self.open_button, self.example_button, None)
        self._drop.setLayout(column(self._picture, headline, kinds, buttons, margin=MARGIN * 2, gap=GAP))
        self._recent_title = label(tr("Recent"), "heading")
        self._recent_column = column(gap=0)
        self._recent = box(self._recent_column)
        steps = [row(_number(at), label(text, "dim"), gap=GAP, stretch=1) for at, text in enumerate(_STEPS, start=1)]
        self.tour_button = button(tr("Take the tour"), start_tour, role="link")
        how = column(label(tr("How it works"), "heading"), *steps, row(self.tour_button, None))
        content = box(column(engine_card, self._drop, self._recent_title, self._recent, how, gap=MARGIN))
        content.setMaximumWidth(_WIDTH)
        middle = row(None, content, None, margin=MARGIN)
        middle.setStretch(1, 100)
        page = box(column(None, middle, None))
        area = QScrollArea(widgetResizable=True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # Not filled, as a new widget is. To ask for the one that is there would make PySide look through all classes.
        area.setViewport(QWidget())
        area.setWidget(page)
        self.setLayout(column(area))
        theme.changed.connect(self._restyle)
        self._restyle(theme.colours)

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Show the recent files."""
        if Part.SETTINGS not in parts:
            return
        clear_layout(self._recent_column)
        for path in document.recent_files[:6]:
            self._recent_column.addWidget(self._recent_row(path))
        for part in (self._recent_title, self._recent):
            part.setVisible(bool(document.recent_files))

    def _recent_row(self, path: str) -> QWidget:
        name = button(one_line(Path(path).name), lambda: self._session.files.open_path(path), role="link", tip=path)
        name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        where = ElidedLabel(str(Path(path).parent), mode=Qt.TextElideMode.ElideMiddle, role="dim")
        if not self._session.files.is_gone(path):
            return box(row(name, where, gap=GAP, stretch=1))
        allow(name, tr("It is no longer there"), path)
        where.setText(tr("no longer in {folder}", folder=str(Path(path).parent)))
        remove = button(tr("Remove"), lambda: self._session.files.forget_recent(path), role="link")
        remove.setAccessibleName(tr("Remove {name} from the recent files", name=Path(path).name))
        return box(row(name, where, remove, gap=GAP, stretch=1))

    def set_hot(self, is_hot: bool) -> None:
        """Highlight the drop area while a file is dragged over the window."""
        set_property(self._drop, "over", "true" if is_hot else "false")

    def _restyle(self, colours: Colours) -> None:
        self._picture.setPixmap(stroke_pixmap("drop", colours.accent, size=44, pixel_ratio=self.devicePixelRatioF()))


def _number(at: int) -> QLabel:
    made = label(str(at), "dim")
    made.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight)
    made.setFixedWidth(18)
    return made


_INSTALLING = tr("Installing the engine")


class PackInstaller(WorkThread):
    """Examines or installs one pack at a time, and tells what it does and its fraction; below 0 if that is not known.

    What it `found` is a `PackOffer`, about which a person has to be asked, or the `Pack` that was installed.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.title = self.what = ""
        """What is done, and with what: the name of a file, or where else the pack comes from."""

    def examine(self, file: Path) -> None:
        """Read a file without installing it; does nothing while another pack is at work."""
        from ace_studio.jobs.pack_install import examine  # noqa: PLC0415 - not needed for the first picture

        self._begin(tr("Examining an engine pack"), file.name, partial(examine, file))

    def install(self, offer: PackOffer, consent: Consent) -> None:
        """Install what was agreed to; does nothing while another pack is at work."""
        from ace_studio.jobs.pack_install import install  # noqa: PLC0415 - not needed for the first picture

        self._begin(_INSTALLING, Path(offer.file).name, partial(install, offer, consent))

    def make_online(self) -> None:
        """Begin to make a pack from the network; does nothing while another installation goes on."""
        from ace_studio.jobs.online_engine import make_online  # noqa: PLC0415 - not needed for the first picture

        def make(_: Report, is_cancelled: Callable[[], bool]) -> object:
            return make_online("", lambda line: self._tell((line, -1.0)), is_cancelled)

        self._begin(_INSTALLING, tr("From the network, by pip"), make)

    def _begin(self, title: str, what: str, do: Callable[[Report, Callable[[], bool]], object]) -> None:
        def work(tell: Tell, _: Started) -> object:
            return do(lambda step, fraction: tell((tr(step), fraction)), lambda: self.is_stopped)

        if not self.isRunning():
            self.title, self.what = title, what
            self.begin(work)


class EngineCard(QFrame):
    """Says that there is no engine, and offers ways to get one; while a pack is installed, how far that is."""

    def __init__(
        self,
        installer: PackInstaller,
        *,
        install_pack: Callable[..., object],
        make_online: Callable[[], object],
        choose_python: Callable[[], object],
    ) -> None:
        super().__init__()
        self.setProperty("role", "card")
        self.setProperty("help", "engine-packs")
        self._installer = installer
        self._offered: Path | None = None
        self._title = label("", "title")
        self._why = label("", "dim")
        self.offer_button = button("", lambda: install_pack(self._offered), role="primary")
        self.file_button = button(tr("Install from a file…"), install_pack)
        self.python_button = button(tr("Use another Python…"), choose_python)
        tip = tr(
            "pip of a Python on this machine fetches torch and the targets, with its own settings. "
            "On Linux these are gigabytes, unless its index has the CPU build of torch."
        )
        self.online_button = button(tr("Make one from the network"), make_online, tip=tip)
        others = row(self.file_button, self.online_button, self.python_button, None)
        self._offers = box(column(row(self.offer_button, None), others))
        self._step, self._bar = label("", "dim"), ProgressBar(tr("Progress"))
        self.cancel_button = button(tr("Cancel"), installer.ask_to_stop)
        self._progress = box(column(self._step, row(self._bar, self.cancel_button, stretch=0)))
        self.setLayout(column(self._title, self._why, self._offers, self._progress, margin=MARGIN))
        installer.told.connect(self._show_progress)
        self._problem: Problem | None = None
        installer.started.connect(self._show)
        installer.finished.connect(self._show)
        self.hide()

    def update_from(self, document: Document) -> None:
        """Show the card if the engine is missing."""
        if self._problem != document.activity.missing_engine:
            self._problem = document.activity.missing_engine
            self._show()

    def _show(self) -> None:
        """Show what there is now: the offers, or the progress. Downloads are looked for each time."""
        from ace_studio.jobs.engine_packs import offered_files  # noqa: PLC0415 - not needed for the first picture

        is_busy = self._installer.isRunning()
        self.setVisible(is_busy or self._problem is not None)
        self._progress.setVisible(is_busy)
        self._offers.setVisible(not is_busy)
        if is_busy:
            self._title.setText(self._installer.title)
            self._why.setText(self._installer.what)
        elif self._problem is not None:
            self._title.setText(tr("The engine is not installed"))
            about = tr("It loads and runs your models, and comes as one file. Without it you can look, but not trace.")
            self._why.setText(f"{about}\n{told(self._problem.what)}. {told(self._problem.why)}.")
            self._offered = next(iter(offered_files()), None)
            self.offer_button.setVisible(self._offered is not None)
            if self._offered is not None:
                self.offer_button.setText(tr("Install {name}", name=self._offered.name.removesuffix(".tar.gz")))
                self.offer_button.setToolTip(str(self._offered))

    def _show_progress(self, progress: tuple[str, float]) -> None:
        step, fraction = progress
        self._step.setText(step if fraction < 0 else f"{step}: {number(fraction, '.0%')}")
        self._bar.show_fraction(None if fraction < 0 else fraction)
