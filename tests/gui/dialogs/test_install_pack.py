"""The question before an engine pack is installed."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from ace_studio.gui.dialogs.install_pack import InstallPackDialog
from ace_studio.jobs.pack_install import Consent, PackOffer
from ace_studio.jobs.signature import Signature, Signer

SHA256 = "3f" * 32
MAKERS = Signature(signer=Signer.MAKERS, key_id="0123456789ABCDEF", comment="timestamp:1 file:pack\nSHA-256: 00")


def offer(signed: Signature, **values: object) -> PackOffer:
    given: dict[str, object] = {
        "file": "/home/ada/Downloads/ace-engine-1.tar.gz", "sha256": SHA256, "name": "ace-engine-1",
        "bytes": 2_400_000_000, "packages": {"torch": "2.13.0"}, "origin": "it lies among downloads",
        "replaces": "ace-engine-0", "unpacked_bytes": 1,
    }  # fmt: skip
    return PackOffer(signed=signed, **(given | values))


@pytest.fixture
def dialog(request, qtbot, desk) -> InstallPackDialog:
    made = InstallPackDialog(offer(request.param), desk.window)
    qtbot.addWidget(made)
    made.show()
    return made


def words(dialog) -> str:
    return "\n".join(one.text() for one in dialog.findChildren(QLabel))


@pytest.mark.parametrize("dialog", [MAKERS], indirect=True)
def test_a_signed_pack_is_installed_by_one_click(dialog, qtbot):
    assert "The makers of this program signed it" in words(dialog) and not dialog.tick.isVisible()
    assert "\nSHA-256: 00" not in words(dialog), "what is signed cannot forge a line"
    assert dialog.install_button.isDefault()
    with qtbot.waitSignal(dialog.accepted):
        qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    assert dialog.consent == Consent(sha256=SHA256)


@pytest.mark.parametrize(
    "dialog", [Signature(signer=Signer.NOBODY), Signature(signer=Signer.OTHERS, key_id="00FF")], indirect=True
)
def test_any_other_needs_a_tick_and_its_default_is_cancel(dialog, qtbot):
    shown = words(dialog)
    assert " sign" in shown and SHA256 in shown and "among downloads" in shown and "ace-engine-0" in shown
    assert dialog.cancel_button.isDefault() and dialog.focusWidget() is dialog.cancel_button
    qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    assert dialog.isVisible()
    dialog.tick.setChecked(True)
    with qtbot.waitSignal(dialog.accepted):
        qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    assert dialog.consent == Consent(sha256=SHA256, takes_unsigned=True)


@pytest.mark.parametrize("dialog", [Signature(signer=Signer.NOBODY)], indirect=True)
def test_return_does_not_install_even_after_the_tick(dialog, qtbot):
    dialog.tick.setChecked(True)
    with qtbot.waitSignal(dialog.rejected):
        qtbot.keyClick(dialog, Qt.Key.Key_Return)
