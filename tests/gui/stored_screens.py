"""Pictures of the window: how each is brought about, and how one is compared with the one stored under ``screens``.

``python -m tests.gui.renew_screens`` stores them anew. Look at the pictures before you commit them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtGui import QFontInfo, QImage
from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.dialogs.changed_on_disk import ChangedOnDiskDialog
from ace_studio.gui.style.theme import monospace
from ace_studio.gui.widgets.table_look import select_rows
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.document import DiskChange
from tests.gui.charting import open_chart
from tests.gui.comparing import two_plans
from tests.gui.graph_tables import partial_capture
from tests.gui.replay import recorded_events
from tests.gui.run_results import REPORT, TABLE, result_of, show_result
from tests.session.fake_engine_link import result, target_run

FOLDER = Path(__file__).with_name("screens")
SIZE = (1000, 640)
THEMES = ("dark", "light", "high-contrast")
BLOCK = 20
"""Pixels. Fonts are drawn a little differently on every machine; the mean colour of a block hardly changes."""
MEAN_LIMIT = 1.5
"""Of 255, over all blocks and channels."""
BLOCK_LIMIT = 35.0
"""Of 255, for the worst block in its worst channel."""


def prepare(desk) -> None:
    """The size of the pictures, and folders that are the same on every machine."""
    desk.engine._recorded = recorded_events(root="/home/ada")
    desk.window.resize(*SIZE)
    desk.settle()


def _select_first_op(desk) -> None:
    graph = desk.document.graph
    desk.session.view.select((next(graph.op_id[row] for row in graph.op_rows()),))


def _fail(desk) -> None:
    desk.running()
    problem = Problem(
        code=ErrorCode.NOT_CAPTURED,
        what="forward() of DigitsNet chooses a branch by a tensor's value",
        why="a graph records one path; this value is known only when it runs",
        remedy="use torch.where or torch.cond there, or allow partial capture",
        where="model.py:41, module blocks.3.gate",
    )
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.panel("problems")


def _dialog(action: str) -> Callable[..., QWidget]:
    def shown(desk) -> QWidget:
        desk.do(action)
        return next(one for one in desk.window.findChildren(QDialog) if one.isVisible())

    return shown


def _changed_on_disk(desk) -> QWidget:
    change = DiskChange(text="[measure]\nrounds = 70\n", mine="[measure]\nrounds = 50\n")
    dialog = ChangedOnDiskDialog(desk.session, desk.window.theme, desk.window, change=change, keep=bool, save_as=bool)
    dialog.show()
    return dialog


def _compared(desk) -> None:
    """A and B, run on a day of their own: the bar shows when."""
    store = desk.session.history.store
    store.add = partial(store.add, date=datetime(2026, 11, 3, 12, 0, tzinfo=UTC))
    two_plans(desk)


def _with_a_past(desk) -> None:
    """Two runs of other days, and the example open."""
    text = recipe_text(Recipe(model=ModelChoice(source="model.py", entry="make_model")))
    for day, target in enumerate(("eager", "openvino"), start=1):
        date = datetime(2026, 11, day, 12, 0, tzinfo=UTC)
        desk.session.history.store.add(
            result(target_run(target)),
            recipe_toml=text,
            title="model.py",
            output="/gone",
            folder="/home/ada",
            date=date,
        )
    desk.open_example()


def _with_advice(desk) -> None:
    cards = (
        Advice(
            kind="keep-ops-high", title="Keep linear_1 at fp32", why="It alone costs 12 dB", estimate="about +6 dB",
            quantity=AdviceQuantity.FIDELITY, estimated_gain=6.0, change={"plan": {"default": "int8-static"}},
        ),
        Advice(
            kind="calibration-data", title="Use real data", why="Ranges come from random numbers", estimate="",
            quantity=AdviceQuantity.TRUST, change={"calibration": {"inputs": "calibration_inputs"}},
            do_first="Write calibration_inputs()",
        ),
    )  # fmt: skip
    desk.captured(TABLE, REPORT)
    show_result(desk, TABLE, result_of(TABLE, advice=cards))


def _looking_back(desk) -> None:
    """A run of the history, opened again."""
    _with_a_past(desk)
    panel = desk.panel("history")
    desk.bot.waitUntil(lambda: panel.model.rowCount() == 2)  # they are read beside the window
    select_rows(panel.table, [0])  # whatever key an earlier test held
    desk.bot.waitUntil(panel.look_button.isEnabled)
    panel.look_button.click()
    desk.bot.waitUntil(lambda: desk.document.past is not None)


def _panel(name: str) -> Callable[..., None]:
    return lambda desk: desk.panel(name) and None


def _chart(name: str) -> Callable[..., None]:
    return lambda desk: open_chart(desk, desk.panel("charts"), name) and None


JOURNEYS: dict[Callable[..., object], dict[str, Callable[..., QWidget | None]]] = {
    lambda _: None: {
        "start": lambda _: None,
        "settings": _dialog("settings"),
        "open-named": _dialog("open-named"),
    },
    lambda desk: desk.open_example(): {
        "model": _panel("model"),
        "sweep": _panel("sweep"),
        "catch": _dialog("catch"),
        "changed-on-disk": _changed_on_disk,
    },
    lambda desk: desk.traced(): {
        "graph": _select_first_op,
        "plan": _panel("plan"),
        "inputs": _panel("shapes"),
        "details": _panel("details"),
        "ops": _panel("ops"),
        "modules": _panel("modules"),
        "source": _panel("source"),
        "capture": _panel("capture"),
    },
    _fail: {"problems": lambda _: None},
    lambda desk: desk.ran(): {
        "results": _panel("results"),
        "charts": _chart("overview"),
        "trade-off": _chart("trade-off"),
        "time": _chart("time"),
        "transitions": _chart("transitions"),
    },
    lambda desk: _select_first_op(desk.ran()): {
        "run": _panel("run"),
        "details-after-run": _panel("details"),
    },
    _with_advice: {"advice": _panel("advice")},
    _with_a_past: {"history": _panel("history")},
    _looking_back: {"past-run": _panel("results")},
    _compared: {"comparison": _panel("results")},
    lambda desk: desk.captured(*partial_capture(4)): {"breaks": _panel("breaks")},
}
"""What brings the window of a desk somewhere, and the pictures that are made from there, one after the other.

The function of a picture returns the dialog that it shows; None for the window.
"""
SCREENS = {name: bring for journey in JOURNEYS.values() for name, bring in journey.items()}


def grab(desk, theme: str, shown: QWidget | None = None) -> QImage:
    """The window, or a dialog, as it is now in a theme, in few colours: that makes the file a third as large."""
    if desk.session.settings.get("theme") != theme:
        desk.session.set_setting("theme", theme)
        desk.settle()
    shown = shown or desk.window
    image = shown.grab()
    while desk.bot.wait(30) or image.toImage() != (now := shown.grab()).toImage():
        image = now  # charts arrange their axes over several frames
    image = image.toImage().convertToFormat(QImage.Format.Format_RGB32)
    rounded = np.minimum((_pixels(image).astype(np.uint16) + 4) // 8 * 8, 255).astype(np.uint8).tobytes()
    return QImage(rounded, image.width(), image.height(), 4 * image.width(), QImage.Format.Format_RGB32).copy()


def save(image: QImage, path: Path) -> bool:
    """Store a picture with a palette of its 256 commonest colours; Qt's own palette is a fixed one."""
    pixels = _pixels(image)[..., :3].reshape(-1, 3).astype(np.int32)
    kinds, where, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = kinds[np.argsort(-counts)[:256]]
    nearest = np.array([np.abs(palette - kind).sum(axis=1).argmin() for kind in kinds], dtype=np.uint8)
    stored = QImage(image.width(), image.height(), QImage.Format.Format_Indexed8)
    stored.setColorTable([0xFF000000 | int(r) << 16 | int(g) << 8 | int(b) for b, g, r in palette])
    rows = np.zeros((image.height(), stored.bytesPerLine()), dtype=np.uint8)
    rows[:, : image.width()] = nearest[where.ravel()].reshape(image.height(), image.width())
    np.frombuffer(stored.bits(), dtype=np.uint8)[:] = rows.ravel()
    return stored.save(str(path), "PNG", 0)


def path_of(name: str, theme: str) -> Path:
    """The file of a stored picture."""
    return FOLDER / f"{name}-{theme}.png"


def difference(image: QImage, stored: QImage) -> str:
    """In what a picture differs from the stored one; empty if it does not."""
    if image.size() != stored.size():
        return f"{image.width()} x {image.height()} instead of {stored.width()} x {stored.height()}"
    off = np.abs(_blocks(image) - _blocks(stored))
    worst = off.max(axis=2)
    row, column = np.unravel_index(np.argmax(worst), worst.shape)
    if off.mean() <= MEAN_LIMIT and worst.max() <= BLOCK_LIMIT:
        return ""
    rows, columns = np.nonzero(worst > 5)
    spread = f"x {columns.min() * BLOCK} to {columns.max() * BLOCK}, y {rows.min() * BLOCK} to {rows.max() * BLOCK}"
    place = f"most at x {column * BLOCK}, y {row * BLOCK}: {worst.max():.0f} (limit {BLOCK_LIMIT:.0f})"
    font = QFontInfo(monospace()).family()
    return (
        f"differs by {off.mean():.2f} of 255 on average (limit {MEAN_LIMIT:.1f}), {place}, "
        f"in {len(rows)} blocks of {spread}; code is in {font}"
    )


def _blocks(image: QImage) -> np.ndarray:
    """Mean colour of every block, [rows, columns, 3]."""
    pixels = _pixels(image.convertToFormat(QImage.Format.Format_RGB32))[..., :3].astype(np.float64)
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    whole = pixels[: rows * BLOCK, : columns * BLOCK]
    return whole.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def _pixels(image: QImage) -> np.ndarray:
    shape = image.height(), image.width(), 4
    return np.frombuffer(image.constBits(), dtype=np.uint8).reshape(shape).copy()  # the image may be gone soon
