"""Installing an engine pack in the window: the thread that does it, and the card that the start page offers it on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFrame

from ace_studio.gui.style import number, told, tr
from ace_studio.gui.widgets.layouts import box, column, row
from ace_studio.gui.widgets.small import MARGIN, ProgressBar, button, label
from ace_studio.gui.widgets.work_thread import Started, Tell, WorkThread
from ace_studio.records.errors import Problem
from ace_studio.session.document import Document

if TYPE_CHECKING:
    from ace_studio.jobs.pack_install import Consent, PackOffer, Report

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
