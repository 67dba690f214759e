"""A file of weights offers what it can be opened with."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtWidgets import QPushButton

from ace_studio.gui.panels.model.origin import Origin
from ace_studio.records.messages import FileReport
from ace_studio.session.document import Document


def test_what_fits_the_weights_comes_before_looking_for_code(desk):
    report = FileReport(
        path="/m/a.pth", kind="state-dict", label="Weights", sha256="a", size_bytes=1, trust="data",
        fits=("timm:resnet18",),
    )  # fmt: skip
    origin = Origin(desk.session, about_to_open=lambda: None)
    desk.bot.addWidget(origin)
    origin.update_from(Document(file=report))
    texts = [one.text() for one in origin.findChildren(QPushButton)]
    assert texts[0] == "resnet18\nof timm"
    assert texts[1].startswith("Look for the code")
    origin.update_from(Document(file=replace(report, kind="python")))
    assert origin.isHidden()
