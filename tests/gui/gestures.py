"""Gestures that several tests make."""

from PySide6.QtCore import Qt

LEFT = Qt.MouseButton.LeftButton


def choose(desk, combo, text):
    """Choose a row of a combo box by the keyboard, as a person would."""
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())
    desk.settle()


def open_block(view, path):
    """Open a block of a graph view, and what hides it, by its module path."""
    picture = view.picture
    chain = picture.tree.chain(picture.tree.block_of_path(path))
    view.canvas.set_open(chain, to=True, anchor=next(node for node in chain if picture.scene.visible[node]))


def close_block(view, path):
    """Close a block of a graph view by its module path."""
    view.canvas.set_open([view.picture.tree.block_of_path(path)], to=False)
