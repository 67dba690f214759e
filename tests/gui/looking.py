"""A graph view, and clicks and keys in it."""

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from ace_studio.gui.graph_view import Colouring

LEFT = Qt.MouseButton.LeftButton


NONE, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)


def block(view, path):
    return view.picture.tree.block_of_path(path)


def row(view, op_id):
    return view.picture.rows_of([op_id])[0]


def middle(view, node):
    scene, camera = view.picture.scene, view.canvas.camera
    x = scene.x[node] + scene.width[node] / 2
    on_title = view.picture.arrangement.is_open(node)
    y = scene.y[node] + (12 if on_title else scene.height[node] / 2)
    place = camera.to_screen(x, y)
    return QPoint(round(place[0]), round(place[1]))


def click(view, node, keys=NONE):
    QTest.mouseClick(view.canvas, LEFT, keys, middle(view, node))


def picture_of(view):
    return view.canvas.grab().toImage()


def colours_in(image):
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    data = np.frombuffer(pixels.constBits(), dtype=np.uint32)
    return {f"#{value & 0xFFFFFF:06x}" for value in np.unique(data).tolist()}


def drag(view, places, keys):
    QTest.mousePress(view.canvas, LEFT, keys, places[0])
    for place in places[1:]:
        QTest.mouseMove(view.canvas, place)
    QTest.mouseRelease(view.canvas, LEFT, keys, places[-1])


def precision_colouring(table):
    labels = {
        op_id: "int8-static" if "linear" in op else "fp32" for op_id, op in zip(table.op_id, table.op, strict=True)
    }
    return Colouring.from_labels("planned precision", labels, colours={"fp32": "#808080", "int8-static": "#11aa77"})
