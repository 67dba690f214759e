"""Examples from a folder of images."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ace_studio.engine.examples.wanted import WantedInput, choose_indices, filled_form
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Subset

IMAGE_CHANNELS = (1, 3)
_BILINEAR = 2
"""``PIL.Image.Resampling.BILINEAR``; Pillow is optional."""
_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"})
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "GIF", "TIFF")
"""Those of `_SUFFIXES`. By the content Pillow also takes others, and has Ghostscript run the programs in EPS files."""
_PILLOW_LINE = "pip install 'pillow>=10,<14'"
_MOST_TRACED = 8
"""Number of images among which one of another size is looked for."""


@dataclass(frozen=True)
class ImageScaling:
    """Scaling of images in 0..1: ``(image - mean) / std`` per channel; an empty tuple leaves the step out."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


def examples_from_images(
    folder: Path,
    form: Example,
    inputs: Sequence[WantedInput],
    *,
    samples: int,
    subset: Subset = Subset.FIRST,
    scaling: ImageScaling | None = None,
    where: str = "",
) -> Iterator[Example]:
    """Calls like ``form`` with one image each, resized (bilinear) to the traced height and width, in 0..1, then scaled.

    Colour or grey follows from the number of channels; channels may come first or last.

    Raises: AceError(NOT_INSTALLED) without Pillow; AceError(BAD_INPUT) if the model does not take one image; AceError
        (NO_DATA) if the folder has none; AceError(BAD_FILE) for one that cannot be read.
    """
    files = _image_files(folder, where)
    template = _image_template(inputs, where)
    scaling = scaling or ImageScaling()
    _check_scaling(scaling, _channels(template), where)
    for index in choose_indices(len(files), samples=samples, subset=subset):
        pixels = _scaled(_read_image(files[index], template, where), scaling)
        shaped = pixels if _is_channels_first(template) else pixels.permute(1, 2, 0)
        if template.dim() == 4:
            shaped = shaped.unsqueeze(0).expand(1 if 0 in inputs[0].free else template.shape[0], *shaped.shape)
        yield filled_form(form, [shaped.contiguous().to(template.dtype)])


def images_to_trace(
    folder: Path, *, channels: int, scaling: ImageScaling | None = None, where: str = ""
) -> Iterator[Example]:
    """Calls with the first images at their own size, [n, channels, height, width], scaled as for calibration.

    The first call has one image, the second two, so that the batch is free; if one of the first few has another size,
    a third call has it alone, so that height and width are free too.

    Raises: AceError, as `examples_from_images` does.
    """
    files = _image_files(folder, where)
    scaling = scaling or ImageScaling()
    _check_scaling(scaling, channels, where)

    def batch(paths: Sequence[Path], size: tuple[int, int]) -> Example:
        template = torch.empty(1, 1, 1, 1).expand(1, channels, *size)
        return Example((torch.stack([_scaled(_read_image(path, template, where), scaling) for path in paths]),))

    sizes = {path: _image_size(path, where) for path in files[:_MOST_TRACED]}
    size = sizes[files[0]]
    alike = [path for path, one in sizes.items() if one == size]
    yield batch(alike[:1], size)
    yield batch((alike * 2)[:2], size)
    other = next((path for path, one in sizes.items() if one != size), None)
    if other is not None:
        yield batch([other], sizes[other])


def _image_size(path: Path, where: str) -> tuple[int, int]:
    """Height and width, from the header of the file."""
    with _opened(path, where) as image:
        return image.height, image.width


@contextmanager
def _opened(path: Path, where: str) -> Iterator[Any]:
    """The image of Pillow. Raises: AceError(BAD_FILE) if it, or what the block wants of it, cannot be read."""
    from PIL import Image  # noqa: PLC0415 - optional package

    try:
        with Image.open(path, formats=_FORMATS) as opened:
            yield opened
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        what, remedy = f"{path.name} cannot be read as an image", "remove it from the folder, or save it again"
        raise AceError.of(ErrorCode.BAD_FILE, what, why=str(error)[:300], remedy=remedy, where=where) from error


def _image_files(folder: Path, where: str) -> list[Path]:
    if importlib.util.find_spec("PIL") is None:
        what = "Reading images needs Pillow, which is not installed"
        raise AceError.of(ErrorCode.NOT_INSTALLED, what, remedy=_PILLOW_LINE, where=where)
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    if not files:
        raise AceError.of(
            ErrorCode.NO_DATA,
            f"There are no images in {folder.name}",
            why="looked for " + " ".join(sorted(_SUFFIXES)),
            remedy="name a folder with images",
            where=where,
        )
    return files


def _image_template(inputs: Sequence[WantedInput], where: str) -> Tensor:
    template = inputs[0].template if len(inputs) == 1 else None
    is_image = (
        template is not None
        and template.dim() in (3, 4)
        and template.is_floating_point()
        and (template.shape[-3] in IMAGE_CHANNELS or template.shape[-1] in IMAGE_CHANNELS)
    )
    if template is None or not is_image:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "A folder of images does not fit this model",
            why="it takes " + ", ".join(f"{one.name} {one.words}" for one in inputs),
            remedy="Give a file of arrays or a function; a model for images has one float input of 1 or 3 channels.",
            where=where,
        )
    return template


def _is_channels_first(template: Tensor) -> bool:
    return template.shape[-3] in IMAGE_CHANNELS


def _channels(template: Tensor) -> int:
    return int(template.shape[-3] if _is_channels_first(template) else template.shape[-1])


def _check_scaling(scaling: ImageScaling, channels: int, where: str) -> None:
    for name, values in (("mean", scaling.mean), ("std", scaling.std)):
        if len(values) not in (0, 1, channels):
            raise AceError.of(
                ErrorCode.RECIPE,
                f"[calibration] {name} has {len(values)} values for {channels} channels",
                remedy=f"give {channels} values, or one for all",
                where=where,
            )


def _read_image(path: Path, template: Tensor, where: str) -> Tensor:
    """One image in 0..1, [channels, height, width], at the size of the template."""
    height, width = template.shape[-2:] if _is_channels_first(template) else template.shape[-3:-1]
    with _opened(path, where) as opened:
        image = opened.convert("L" if _channels(template) == 1 else "RGB")
        resized = image.resize((int(width), int(height)), _BILINEAR)
    pixels = torch.from_numpy(np.array(resized, dtype=np.float32)) / 255.0
    return pixels.unsqueeze(0) if pixels.dim() == 2 else pixels.permute(2, 0, 1)


def _scaled(pixels: Tensor, scaling: ImageScaling) -> Tensor:
    if scaling.mean:
        pixels = pixels - torch.tensor(scaling.mean).reshape(-1, 1, 1)
    if scaling.std:
        pixels = pixels / torch.tensor(scaling.std).reshape(-1, 1, 1)
    return pixels
