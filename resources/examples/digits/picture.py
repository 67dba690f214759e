"""Draw ``digits.png``: held-out pictures with the digit the network reads, and every one that it misreads."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from model import Split, load_splits, make_model
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QGuiApplication, QImage, QPainter
from torch import Tensor

PICTURE = Path(__file__).resolve().with_name("digits.png")
COLUMNS, CELL, LABEL, GAP = 12, 64, 22, 10
INK, PAPER, WRONG = QColor("#1b1f24"), QColor("#ffffff"), QColor("#b3261e")


def chosen_pictures(split: Split, guesses: Tensor) -> list[int]:
    """Two of every digit that are read rightly, then everything that is misread."""
    right = [
        index
        for digit in range(10)
        for index in torch.nonzero((split.digits == digit) & (guesses == digit)).flatten()[:2].tolist()
    ]
    return right + torch.nonzero(guesses != split.digits).flatten().tolist()


def _gray_image(pixels: Tensor) -> QImage:
    """Picture [1, 8, 8] with brightness 0..1 as dark ink on white."""
    gray = ((1 - pixels[0]) * 255).round().to(torch.uint8)
    return QImage(bytes(gray.flatten().tolist()), 8, 8, 8, QImage.Format.Format_Grayscale8).copy()


def draw(split: Split, guesses: Tensor, scores: Tensor) -> QImage:
    """The contact sheet."""
    chosen = chosen_pictures(split, guesses)
    rows = -(-len(chosen) // COLUMNS)
    sheet = QImage(COLUMNS * (CELL + GAP) + GAP, rows * (CELL + LABEL + GAP) + GAP, QImage.Format.Format_RGB32)
    sheet.fill(PAPER)
    painter = QPainter(sheet)
    painter.setFont(QFont("DejaVu Sans", 10))
    for place, index in enumerate(chosen):
        left = GAP + (place % COLUMNS) * (CELL + GAP)
        top = GAP + (place // COLUMNS) * (CELL + LABEL + GAP)
        is_right = bool(guesses[index] == split.digits[index])
        share = scores[index].softmax(dim=0).max().item()
        label = f"{guesses[index]}  {share:.0%}" if is_right else f"{guesses[index]}, is {split.digits[index]}"
        painter.setPen(INK if is_right else WRONG)
        painter.drawText(QRectF(left, top, CELL, LABEL), Qt.AlignmentFlag.AlignCenter, label)
        painter.drawImage(QRectF(left, top + LABEL, CELL, CELL), _gray_image(split.pixels[index]))
        painter.drawRect(QRectF(left, top + LABEL, CELL - 1, CELL - 1))
    painter.end()
    return sheet


def main() -> None:
    """Read the held-out pictures and draw."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QGuiApplication([])
    _, test = load_splits()
    with torch.no_grad():
        scores = make_model()(test.pixels)
    sheet = draw(test, scores.argmax(dim=1), scores)
    sheet.save(str(PICTURE))
    print(f"{PICTURE.name}: {sheet.width()} x {sheet.height()}")
    application.quit()


if __name__ == "__main__":
    main()
