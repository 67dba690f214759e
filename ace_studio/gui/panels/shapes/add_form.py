"""The line that adds an input: its name, its shape and its element type."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from ace_studio.gui.panels.shapes import rows
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import TIGHT, row
from ace_studio.gui.widgets.small import button, set_role

_EXAMPLE = "1x3x224x224"
_EXAMPLES = {"value": "1.0", "none": ""}
_VALUE_TIP = tr("A number, True, False or a text in quotes, as in 'fast'")


class AddInputForm(QWidget):
    """Three fields and a button."""

    wanted = Signal(object)
    """The `InputSpec` of the new input."""

    def __init__(self) -> None:
        """An empty field counts as its placeholder."""
        super().__init__()
        self._hint = "x"
        self.name, self.shape, self.dtype = QLineEdit(), QLineEdit(), ComboBox()
        for field, name, hint, width in (
            (self.name, tr("Name of the new input"), "x", 80),
            (self.shape, tr("Shape of the new input"), _EXAMPLE, 120),
        ):
            field.setAccessibleName(name)
            field.setToolTip(name)
            field.setPlaceholderText(hint)
            field.setMaximumWidth(width)
            field.returnPressed.connect(self.add)
        self.dtype.setAccessibleName(tr("Element type of the new input"))
        self.dtype.addItems([*rows.INPUT_DTYPES, *rows.PLAIN_KINDS])
        self.dtype.currentTextChanged.connect(self._change_kind)
        self.button = button(tr("Add input"), self.add)
        self.setLayout(row(self.name, self.shape, self.dtype, self.button, gap=TIGHT))

    def offer(self, names: Sequence[str]) -> None:
        """Set the inputs that have no column yet; the first is the default name."""
        self._hint = names[0] if names else "x"
        self.name.setPlaceholderText(self._hint)
        listed = tr(": the model still needs {names}", names=", ".join(names)) if names else ""
        self.name.setToolTip(tr("Name of the new input{listed}", listed=listed))

    def _change_kind(self, kind: str) -> None:
        """The shape field takes the value of a Python value."""
        self.shape.setPlaceholderText(_EXAMPLES.get(kind, _EXAMPLE))
        self.shape.setToolTip(_VALUE_TIP if kind == "value" else self.shape.accessibleName())
        self.shape.setEnabled(kind != "none")

    def _spec(self, name: str) -> rows.InputSpec | None:
        kind, text = self.dtype.currentText(), self.shape.text().strip()
        if kind in rows.PLAIN_KINDS:
            values = f"{kind} {text or _EXAMPLES[kind]}".strip() if kind == "value" else kind
            column = rows.ShapeColumn(input=name, kind=rows.ColumnKind.VALUES)
            return None if rows.cell_fault({}, column, values) else rows.InputSpec(name=name, values=values)
        shape = rows.parse_shape(text or _EXAMPLE)
        return None if shape is None else rows.InputSpec(name=name, shape=shape, dtype=kind)

    def add(self) -> None:
        """Ask for the input, if its shape or value makes sense."""
        spec = self._spec(self.name.text().strip() or self._hint)
        set_role(self.shape, "" if spec is not None else "bad")
        if spec is None:
            self.shape.setFocus()
            self.shape.selectAll()
            return
        self.name.clear()
        self.shape.clear()
        self.wanted.emit(spec)
