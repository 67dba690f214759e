"""The shipped example: a small network that reads handwritten digits of 8 x 8 pixels.

Everything a recipe can ask of a source file is here: the entry `make_model`, examples to trace with, examples to
calibrate with, and an evaluation on pictures that neither training nor calibration has seen. The pictures are the
1797 digits that scikit-learn carries (UCI, Alpaydin and Kaynak 1998), so nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

WEIGHTS = Path(__file__).resolve().with_name("digits.safetensors")
SPLIT_SEED = 20240229
TEST_FRACTION = 1 / 3
CALIBRATION_PICTURES = 256
BATCH = 64


class DigitNet(nn.Module):
    """Three convolutions and two linear layers; 8 x 8 pixels in, ten scores out.

    Shapes: pixels [batch, 1, 8, 8], brightness 0..1 -> logits [batch, 10].
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _block(1, 32),
            _block(32, 64),
            nn.MaxPool2d(2),
            _block(64, 128),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(128 * 4 * 4, 128),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(128, 10),
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """Score every picture against the ten digits."""
        return self.classifier(self.features(pixels))


def _block(channels_in: int, channels_out: int) -> nn.Sequential:
    """A convolution that keeps the picture's size, normalised and rectified."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


def make_model() -> nn.Module:
    """The trained network, ready to use."""
    model = DigitNet()
    model.load_state_dict(load_file(WEIGHTS))
    return model.eval()


@dataclass(frozen=True)
class Split:
    """Pictures [n, 1, 8, 8] with brightness 0..1, their digits [n], and their numbers in the data set [n]."""

    pixels: Tensor
    digits: Tensor
    numbers: Tensor


@cache
def load_splits() -> tuple[Split, Split]:
    """The training and the held-out pictures: disjoint, stratified by digit, the same on every machine."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - takes a second, and a trace does not need it
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    pictures = load_digits()
    train, test = train_test_split(
        range(len(pictures.target)),
        test_size=TEST_FRACTION,
        stratify=pictures.target,
        random_state=SPLIT_SEED,
    )
    pixels = torch.tensor(pictures.images, dtype=torch.float32).unsqueeze(1) / 16
    digits = torch.tensor(pictures.target)
    train_numbers, test_numbers = torch.tensor(train), torch.tensor(test)
    return (
        Split(pixels[train_numbers], digits[train_numbers], train_numbers),
        Split(pixels[test_numbers], digits[test_numbers], test_numbers),
    )


def tracing_inputs() -> list[tuple[Tensor]]:
    """Two examples that differ in the batch, so that the batch is found to be dynamic."""
    generator = torch.Generator().manual_seed(0)
    return [(torch.rand(batch, 1, 8, 8, generator=generator),) for batch in (1, 16)]


def calibration_inputs() -> list[tuple[Tensor]]:
    """Batches from the training pictures; the held-out ones are never calibrated on."""
    train, _ = load_splits()
    return [(batch,) for batch in train.pixels[:CALIBRATION_PICTURES].split(BATCH)]


def evaluate(predict: Callable[[Tensor], Tensor]) -> float:
    """Accuracy, 0..1, on the held-out pictures."""
    _, test = load_splits()
    guesses = torch.cat([predict(batch).argmax(dim=1) for batch in test.pixels.split(BATCH)])
    return float((guesses.cpu() == test.digits).double().mean())
