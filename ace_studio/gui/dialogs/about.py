"""About: what this is, the versions for a report, and the licences of everything that it runs on.

An installer lists what it holds in ``contents.cdx.json`` and has the texts in ``licences`` beside it, by
packaging/installers/contents.py: more than Python packages, and none that only this machine has.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec
from PySide6 import __version__ as qt_version
from PySide6.QtWidgets import QApplication, QDialog, QListWidget, QTabWidget, QWidget

import ace_studio
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import column, row, split
from ace_studio.gui.widgets.small import MARGIN, button, fit_screen, label, plain_text
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.records.messages import EnvironmentReport
from ace_studio.session.session import Session


class AboutDialog(QDialog):
    """Versions, ready to be copied into a report, and licences."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("About ACE Studio"))
        self.setProperty("help", "index")
        fit_screen(self, 680, 480)
        self.facts = plain_text(tr("Versions"), about_text(session.document.environment))
        self.licences = QListWidget()
        self.licences.setAccessibleName(tr("Packages"))
        self.licences.currentRowChanged.connect(self._show_licence)
        self.text = plain_text(tr("Licence"))
        both = split(self.licences, self.text, sizes=(230, 400), can_close=True)
        self.tabs = QTabWidget(documentMode=True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.addTab(self.facts, tr("Versions"))
        self.tabs.addTab(both, tr("Licences"))
        self.tabs.currentChanged.connect(lambda at: self._fill_licences() if at else None)
        text = label(
            tr(
                "Trace, compress, lower, measure and verify PyTorch models, on this machine. "
                "Free software under the Apache License 2.0. Qt is used under the LGPL."
            ),
            "dim",
        )
        clipboard = QApplication.clipboard()
        copy = button(
            tr("Copy versions"), lambda: clipboard.setText(self.facts.toPlainText()), tip=tr("For a bug report")
        )
        close = button(tr("Close"), self.accept)
        close.setDefault(True)
        title = label("ACE Studio", "title")
        self.setLayout(column(title, text, self.tabs, row(None, copy, close), margin=MARGIN))

    def _fill_licences(self) -> None:
        """List the packages, when they are first looked at: that reads a file of each."""
        if not self.licences.count():
            self._found = shipped_licences(contents_folder()) or licences()
            self.licences.addItems([each.title for each in self._found])
            self.licences.addItem(tr("Icons, fonts and data"))
            for at in range(self.licences.count()):
                self.licences.item(at).setToolTip(self.licences.item(at).text())
            self.licences.setCurrentRow(0)

    def _show_licence(self, at: int) -> None:
        is_package = 0 <= at < len(self._found)
        self.text.setPlainText(self._found[at].text if is_package else SHIPPED_DATA)


def about_text(environment: EnvironmentReport | None) -> str:
    """Versions of the window and of the engine as plain lines."""
    lines = [f"ACE Studio {ace_studio.__version__}", f"Qt {qt_version}"]
    if environment is None:
        return "\n".join([*lines, tr("The engine has not reported its versions yet.")])
    lines += [
        f"Python {environment.python} ({environment.executable})",
        f"{environment.platform}",
        f"{environment.cpu}, {environment.cores} cores, {bytes_text(environment.memory_bytes)}",
        "",
        *(f"{name} {version}" for name, version in environment.versions.items()),
        "",
        *(f"{device.name}: {device.label if device.available else device.reason}" for device in environment.devices),
        *environment.notes,
    ]
    return "\n".join(lines)


OWN = "ace-studio"
CONTENTS = "contents.cdx.json"
NOT_SHIPPED = {"test"}
"""Extras that are for developers."""
SHIPPED_DATA = (
    "Icons: drawn for ACE Studio, under its own licence.\nFonts: none; the window uses those of the system.\n"
    "The example: the handwritten digits that scikit-learn brings (UCI, E. Alpaydin and C. Kaynak, 1998, CC BY 4.0)."
)
_BY_TEXT = {
    tr("Apache License"): "Apache-2.0",
    tr("Permission is hereby granted, free of charge"): "MIT",
    tr("Redistribution and use in source and binary forms"): "BSD",
}
"""Words of a licence's text -> its name, where the package does not name it."""


@dataclass(frozen=True)
class Licence:
    """The licence of one installed package."""

    package: Distribution

    @property
    def title(self) -> str:
        """Name, version and licence."""
        return f"{self.package.name} {self.package.version}: {self.name or 'unknown'}"

    @property
    def name(self) -> str:
        """The licence as the package or its text names it; empty if neither does."""
        facts = self.package.metadata
        classes = [line.rpartition("::")[2].strip() for line in facts.get_all("Classifier", []) if "License ::" in line]
        said = "".join((facts.get_all("License-Expression") or facts.get_all("License") or [])[:1])
        if said and "\n" not in said and len(said) < 120:
            return said
        return ", ".join(classes) or next((name for words, name in _BY_TEXT.items() if words in self.text), "")

    @property
    def text(self) -> str:
        """The texts that the package brings, or where to find them."""
        files = [file for file in self.package.files or () if re.search(r"licen[cs]e|copying|notice", file.name, re.I)]
        texts = [Path(str(file.locate())).read_text(encoding="utf-8", errors="replace") for file in files[:40]]
        if self.package.name == OWN and not texts:
            texts = [(Path(__file__).parents[3] / "LICENSE").read_text(encoding="utf-8")]
        pages = (*self.package.metadata.get_all("Project-URL", []), *self.package.metadata.get_all("Home-page", []))
        return "\n\n".join(texts) or "\n".join([tr("The package brings no text of its licence."), *pages])


@dataclass(frozen=True)
class ShippedLicence:
    """The licence of one thing that an installed program holds."""

    title: str
    """Name, version and licence."""
    file: Path

    @property
    def text(self) -> str:
        """The text, or that there is none."""
        if not self.file.is_file():
            return tr("The package brings no text of its licence.")
        return self.file.read_text(encoding="utf-8", errors="replace")


def contents_folder() -> Path:
    """Where an installer lists what it holds: beside the program, and in the resources of a macOS application."""
    program = Path(sys.executable).parent
    return next((one for one in (program, program.parent / "Resources") if (one / CONTENTS).is_file()), program)


def shipped_licences(folder: Path) -> list[ShippedLicence]:
    """ACE Studio first, then everything else that the program holds, by name; empty without a list of contents."""
    if not (folder / CONTENTS).is_file():
        return []
    components = msgspec.json.decode((folder / CONTENTS).read_bytes())["components"]
    return [
        ShippedLicence(
            f"{one['name']} {one.get('version', '')}: {', '.join(_names(one)) or 'unknown'}",
            folder / "licences" / f"{one['name']}.txt",
        )
        for one in sorted(components, key=lambda one: (one["name"] != OWN, one["name"].casefold()))
    ]


def _names(component: dict[str, Any]) -> list[str]:
    found = []
    for each in component.get("licenses", []):
        inner = each.get("license", {})
        found.append(each.get("expression") or inner.get("id") or inner.get("name") or "")
    return [name.rpartition(":: ")[2] for name in found if name]


def licences() -> list[Licence]:
    """ACE Studio first, then every installed package that it needs, directly or not, by name."""
    found: dict[str, Distribution] = {}
    waiting = [OWN]
    while waiting:
        name = waiting.pop()
        if name.casefold() not in found:
            try:
                package = found[name.casefold()] = distribution(name)
            except PackageNotFoundError:
                continue
            waiting += _needs(package, with_extras=name == OWN)
    unique = {package.name.casefold(): package for package in found.values()}
    own = unique.pop(OWN, None)
    return [Licence(package) for package in ([own] if own else []) + [unique[name] for name in sorted(unique)]]


def _needs(package: Distribution, *, with_extras: bool) -> Iterator[str]:
    for line in package.requires or ():
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        name = re.match(r"[\w.-]+", line)
        is_wanted = extra is None or (with_extras and extra[1] not in NOT_SHIPPED)
        if name is not None and is_wanted:
            yield name[0]
