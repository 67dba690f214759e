"""Real data that is installed already: scikit-learn's digits and two photos, and the source of Python's own library.

The digits are of the UCI repository (CC BY 4.0), the photos are CC BY, the source is under Python's licence. Every
function gives what is learnt from and what is held out; nothing is in both.
"""

import re
import sysconfig
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

Labelled = tuple[Tensor, Tensor]
MODULES = ("argparse", "_pydecimal", "turtle", "statistics", "typing", "inspect", "tarfile", "ipaddress")
WORDS = 2048
"""Words are numbered by their hash; 0 fills up."""
LENGTH = 48
"""Words of one example of text."""
CONTEXT, AHEAD = 96, 16
"""Points of a line of a photo that are known, and those that are foretold."""
STRIP = 5
"""Digits in a strip."""


def digits(size: int) -> tuple[Labelled, Labelled]:
    """Pictures [N, 3, size, size] about 0, and which digit each is [N]; every fifth is held out."""
    from sklearn.datasets import load_digits

    found = load_digits()
    grey = torch.from_numpy(found.images).float()[:, None] / 8 - 1
    pictures = nn.functional.interpolate(grey, size=(size, size), mode="bilinear").expand(-1, 3, -1, -1).contiguous()
    return _every_fifth(pictures, torch.from_numpy(found.target).long())


def strips() -> tuple[Labelled, Labelled]:
    """Strips of digits side by side [N, 1, 16, 80], a little shifted, and the digits [N, 5]."""
    (learnt, names), (held, held_names) = digits(16)
    return _strips(learnt, names, count=1600, seed=1), _strips(held, held_names, count=120, seed=2)


def _strips(pictures: Tensor, names: Tensor, *, count: int, seed: int) -> Labelled:
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(0, len(pictures), (count, STRIP), generator=generator)
    strip = pictures[chosen, 0].permute(0, 2, 1, 3).flatten(2)[:, None].contiguous()
    shifts = torch.randint(-2, 3, (count,), generator=generator).tolist()
    return torch.stack([one.roll(by, 1) for one, by in zip(strip, shifts, strict=True)]), names[chosen]


def sources() -> tuple[Labelled, Labelled]:
    """Runs of words of Python's own modules [N, 48], and which of the eight modules each is from [N]."""
    folder = Path(sysconfig.get_path("stdlib"))
    runs, labels = [], []
    for label, name in enumerate(MODULES):
        words = re.findall(r"\w+|[^\w\s]", (folder / f"{name}.py").read_text("utf-8"))
        numbers = [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in words]
        cut = [numbers[at : at + LENGTH] for at in range(0, len(numbers) - LENGTH + 1, LENGTH)]
        runs += cut
        labels += [label] * len(cut)
    return _every_fifth(torch.tensor(runs), torch.tensor(labels))


def lines() -> tuple[Labelled, Labelled]:
    """Lines of two photos [N, 96, 3] in 0 to 1, and how they go on [N, 16, 3]; a photo's lowest fifth is held out."""
    learnt, held = [], []
    for photo in _photos():
        border = photo.shape[0] * 4 // 5
        windows = photo.unfold(1, CONTEXT + AHEAD, 48).permute(0, 1, 3, 2)
        learnt.append(windows[:border].flatten(0, 1))
        held.append(windows[border:].flatten(0, 1)[::17])
    both = [torch.cat(side) for side in (learnt, held)]
    return (both[0][:, :CONTEXT], both[0][:, CONTEXT:]), (both[1][:, :CONTEXT], both[1][:, CONTEXT:])


def scenes() -> tuple[Labelled, Labelled]:
    """Cuts of photos with a digit written over them [N, 3, 64, 64], and where the strokes are [N, 64, 64]."""
    (learnt, _), (held, _) = digits(40)
    photos = _photos()
    upper = [photo[: photo.shape[0] * 4 // 5] for photo in photos]
    lower = [photo[photo.shape[0] * 4 // 5 :] for photo in photos]
    return _scenes(upper, learnt, count=900, seed=3), _scenes(lower, held, count=120, seed=4)


def _scenes(photos: list[Tensor], pictures: Tensor, *, count: int, seed: int) -> Labelled:
    rng = np.random.default_rng(seed)
    made, masks = [], []
    for _ in range(count):
        photo = photos[rng.integers(len(photos))]
        top, left = (int(rng.integers(side - 63)) for side in photo.shape[:2])
        scene = photo[top : top + 64, left : left + 64].permute(2, 0, 1).clone()
        mask = torch.zeros(64, 64, dtype=torch.bool)
        at, beside = (int(one) for one in rng.integers(0, 24, 2))
        mask[at : at + 40, beside : beside + 40] = pictures[rng.integers(len(pictures)), 0] > 0.2
        ink = torch.from_numpy(rng.random((3, 1)).astype(np.float32))
        scene[:, mask] = 0.25 * scene[:, mask] + 0.75 * ink
        made.append(scene * 2 - 1)
        masks.append(mask.long())
    return torch.stack(made), torch.stack(masks)


def _photos() -> list[Tensor]:
    """The photos [height, width, 3] in 0 to 1."""
    from sklearn.datasets import load_sample_images

    return [torch.from_numpy(image.copy()).float() / 255 for image in load_sample_images().images]


def _every_fifth(inputs: Tensor, labels: Tensor) -> tuple[Labelled, Labelled]:
    held = torch.arange(len(inputs)) % 5 == 4
    return (inputs[~held], labels[~held]), (inputs[held], labels[held])
