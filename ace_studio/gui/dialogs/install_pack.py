"""The question before an engine pack is installed: which file, who signed it, and what it will do."""

from PySide6.QtWidgets import QCheckBox, QDialog, QFormLayout, QWidget

from ace_studio.gui.style import monospace, told, tr
from ace_studio.gui.widgets.layouts import GAP, box, column, row
from ace_studio.gui.widgets.small import MARGIN, button, label, selectable
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.jobs.pack_install import Consent, PackOffer
from ace_studio.jobs.signature import Signer
from ace_studio.records.errors import one_line


class InstallPackDialog(QDialog):
    """Install, or leave it, which Esc means too. What the makers did not sign needs a tick before."""

    def __init__(self, offer: PackOffer, parent: QWidget | None = None) -> None:
        super().__init__(parent, modal=True)
        self.setWindowTitle(tr("Install this engine pack?"))
        self.setProperty("help", "engine-packs#signatures")
        self._offer = offer
        self.signed = label(*_signed_words(offer), strong=True)
        self.signed.setMinimumWidth(560)
        facts = QFormLayout(horizontalSpacing=MARGIN, verticalSpacing=GAP)
        for name, text in _facts(offer):
            shown = selectable(label(one_line(text)))
            if text == offer.sha256:
                shown.setFont(monospace())
            facts.addRow(label(name, "dim", wrap=False), shown)
        self.tick = QCheckBox(tr("I know who made this file, and its SHA-256 is the one that they name"))
        self.tick.setVisible(not offer.is_signed)
        self.cancel_button = button(tr("Cancel"), self.reject)
        self.install_button = button(tr("Install it"), self.accept, role="primary")
        first = self.install_button if offer.is_signed else self.cancel_button
        self.install_button.setEnabled(offer.is_signed)
        self.tick.toggled.connect(self.install_button.setEnabled)
        for each in (self.install_button, self.cancel_button):
            each.setAutoDefault(each is first)
        first.setDefault(True)
        buttons = row(None, self.cancel_button, self.install_button)
        self.setLayout(column(label(offer.name, "title"), self.signed, box(facts), self.tick, buttons, margin=MARGIN))
        first.setFocus()

    @property
    def consent(self) -> Consent:
        """What was agreed to; counts once `accepted` was told."""
        return Consent(sha256=self._offer.sha256, takes_unsigned=self.tick.isChecked())


def _signed_words(offer: PackOffer) -> tuple[str, str]:
    """Who signed it, and the role of that."""
    if offer.signed.signer is Signer.MAKERS:
        return tr("The makers of this program signed it: {comment}", comment=one_line(offer.signed.comment)), "good"
    if offer.signed.signer is Signer.OTHERS:
        words = tr(
            "The makers of this program did not sign it. It is signed with another key ({key}), which cannot be "
            "checked here.",
            key=offer.signed.key_id,
        )
        return words, "warn"
    return tr("Nobody signed it. Whoever gave you this file can do with your data what you can."), "warn"


def _facts(offer: PackOffer) -> tuple[tuple[str, str], ...]:
    """Names and texts of the lines."""
    torch = offer.packages.get("torch", "–")
    use = tr("Its programs load and run your models, with all that you may do on this machine.")
    if offer.replaces:
        use += " " + tr("Now {name} does that.", name=offer.replaces)
    return (
        (tr("File"), offer.file),
        (tr("Origin"), told(offer.origin) if offer.origin else tr("nothing says that it was downloaded")),
        ("SHA-256", offer.sha256),
        (tr("Holds"), tr("torch {torch}, {count} packages, {size}", torch=torch, count=len(offer.packages),
                         size=bytes_text(offer.bytes))),
        (tr("Used for"), use),
    )  # fmt: skip
