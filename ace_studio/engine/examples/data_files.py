"""Examples from data files: arrays by the names of the inputs, or a folder of images. Nothing in them is ever run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import Subset

ReadContent = Callable[[Path], Mapping[str, Any]]
"""Reads a file of arrays: name -> tensor, or list of tensors; what has no name stands under an empty one."""
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"})
LABEL_NAMES = ("labels", "label", "targets", "target", "y")
"""What the array of a file is called that is no input, but what the outputs should be; the first there is counts."""
PILLOW_LINE = "pip install 'pillow>=10,<14'"
MOST_TRACED_IMAGES = 8
"""So many images are looked at for one of another size."""
_SEED = 0
_CHANNELS = (1, 3)


@dataclass(frozen=True)
class WantedInput:
    """One tensor input of the model, as an example gives it."""

    name: str
    template: Tensor
    free: frozenset[int] = frozenset()
    """Dimensions that may have any size."""

    @property
    def words(self) -> str:
        """``float32 [n, 3, 224, 224]``."""
        sizes = ", ".join("any" if index in self.free else str(size) for index, size in enumerate(self.template.shape))
        return f"{_type_word(self.template)} [{sizes}]"


@dataclass(frozen=True)
class ImageScaling:
    """What images in 0..1 become: ``(image - mean) / std`` per channel; empty for nothing."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


def choose_indices(count: int, *, samples: int, subset: Subset) -> list[int]:
    """Which of ``count`` examples are used: at most ``samples``, in rising order; random ones under a fixed seed."""
    if count <= samples or subset is Subset.FIRST:
        return list(range(min(count, samples)))
    if subset is Subset.SPREAD:
        return [index * count // samples for index in range(samples)]
    drawn = torch.randperm(count, generator=torch.Generator().manual_seed(_SEED))[:samples]
    return sorted(drawn.tolist())


# --- arrays ---


def examples_from_arrays(
    arrays: Mapping[str, Any],
    form: Example,
    inputs: Sequence[WantedInput],
    *,
    samples: int,
    subset: Subset = Subset.FIRST,
    where: str = "",
) -> tuple[Example, ...]:
    """Calls like ``form`` with tensors out of arrays whose first axis counts the samples.

    An array [N, ...] is cut into batches of the traced size (1 if the batch is free); an array with one dimension more
    than the input, or a list, holds whole inputs. A file of a list holds examples: tuples, dicts or tensors.

    Args:
        arrays: Name -> tensor, or list of tensors; what a file holds without names stands under an empty one.
        form: A call of the model; its tensors are replaced, everything else stays.
        inputs: One per tensor of ``form``, in order.
        samples: At most so many examples.
        subset: Which, if there are more.
        where: The recipe's key that names the file.

    Raises: AceError(BAD_INPUT), with a problem for every array that does not fit its input.
    """
    content = arrays.get("")
    if isinstance(content, list | tuple) and not all(isinstance(one, Tensor) for one in content):
        return tuple(
            Example.of(content[index]) for index in choose_indices(len(content), samples=samples, subset=subset)
        )
    given = _by_input(arrays, inputs, where)
    batches, problems = {}, []
    for wanted in inputs:
        problem = _misfit(given[wanted.name], wanted)
        if problem:
            problems.append(_bad_array(wanted, problem, where))
        else:
            batches[wanted.name] = _batches(given[wanted.name], wanted)
    if problems:
        raise AceError(*problems)
    counts = {name: len(one) for name, one in batches.items()}
    if len(set(counts.values())) > 1:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "The arrays do not hold equally many samples",
            why=", ".join(f"{name}: {count}" for name, count in counts.items()),
            remedy="Give every input as many samples; the first axis counts them.",
            where=where,
        )
    chosen = choose_indices(min(counts.values()), samples=samples, subset=subset)
    return tuple(_filled(form, [batches[one.name][index] for one in inputs]) for index in chosen)


def _by_input(arrays: Mapping[str, Any], inputs: Sequence[WantedInput], where: str) -> dict[str, Any]:
    """Name of each input -> its array; a model of one input takes the only array under any name."""
    wanted = {one.name for one in inputs}
    usable = {name: value for name, value in arrays.items() if name in wanted or name not in LABEL_NAMES}
    if len(inputs) == 1 and len(usable) == 1:
        return {inputs[0].name: next(iter(usable.values()))}
    lacking = [one for one in inputs if one.name not in usable]
    if lacking:
        raise AceError(
            *(
                Problem(
                    code=ErrorCode.BAD_INPUT,
                    what=f"There is no array '{one.name}' for the input of this name ({one.words})",
                    why="the file holds " + (", ".join(name or "one array" for name in usable) or "nothing"),
                    remedy="Name the arrays like the inputs of the model.",
                    where=where,
                )
                for one in lacking
            )
        )
    return {one.name: usable[one.name] for one in inputs}


def _misfit(value: Any, wanted: WantedInput) -> str:
    """What is wrong with an array for an input; empty if it fits."""
    parts = value if isinstance(value, list | tuple) else [value]
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        return f"it is {type(value).__name__}, not an array" if parts else "it is an empty list"
    for part in parts:
        if part.is_floating_point() != wanted.template.is_floating_point() or part.is_complex():
            return f"its numbers are {_type_word(part)}"
        rank = wanted.template.dim()
        is_whole = isinstance(value, list | tuple) or part.dim() == rank + 1
        shape = part.shape[1:] if is_whole and part.dim() == rank + 1 else part.shape
        wrong = len(shape) != rank or any(
            size != wanted.template.shape[index]
            for index, size in enumerate(shape)
            if index not in wanted.free and (index > 0 or is_whole)
        )
        if wrong:
            return f"its shape is {list(part.shape)}"
        if part.dim() and not len(part):
            return "it is empty"
    return ""


def _bad_array(wanted: WantedInput, problem: str, where: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_INPUT,
        what=f"The array '{wanted.name}' does not fit the input of this name",
        why=f"{problem}; expected is {wanted.words} with the samples along the first axis",
        remedy="Store it in this shape and type, or trace with examples of its size so that the dimension is free.",
        where=where,
    )


def _batches(value: Any, wanted: WantedInput) -> list[Tensor]:
    """The array as inputs of the model, one per sample; a rest that fills no batch is left out."""
    dtype = wanted.template.dtype
    if isinstance(value, list | tuple):
        return [part.to(dtype) for part in value]
    if value.dim() == wanted.template.dim() + 1:
        return [part.to(dtype) for part in value]
    batch = 1 if 0 in wanted.free else wanted.template.shape[0]
    return [value[start : start + batch].to(dtype) for start in range(0, len(value) - batch + 1, batch)]


def _filled(form: Example, tensors: Sequence[Tensor]) -> Example:
    waiting = iter(tensors)
    return form.map_tensors(lambda leaf: next(waiting).to(leaf.device))


def _type_word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


# --- images ---


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
        yield _filled(form, [shaped.contiguous().to(template.dtype)])


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

    sizes = {path: _image_size(path, where) for path in files[:MOST_TRACED_IMAGES]}
    size = sizes[files[0]]
    alike = [path for path, one in sizes.items() if one == size]
    yield batch(alike[:1], size)
    yield batch((alike * 2)[:2], size)
    other = next((path for path, one in sizes.items() if one != size), None)
    if other is not None:
        yield batch([other], sizes[other])


def _image_size(path: Path, where: str) -> tuple[int, int]:
    """Height and width as the file says them."""
    from PIL import Image  # noqa: PLC0415 - optional package

    try:
        with Image.open(path) as opened:
            return opened.height, opened.width
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _bad_image(path, error, where) from error


def _image_files(folder: Path, where: str) -> list[Path]:
    if importlib.util.find_spec("PIL") is None:
        what = "Reading images needs Pillow, which is not installed"
        raise AceError.of(ErrorCode.NOT_INSTALLED, what, remedy=PILLOW_LINE, where=where)
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file())
    if not files:
        raise AceError.of(
            ErrorCode.NO_DATA,
            f"There are no images in {folder.name}",
            why="looked for " + " ".join(sorted(IMAGE_SUFFIXES)),
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
        and (template.shape[-3] in _CHANNELS or template.shape[-1] in _CHANNELS)
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
    return template.shape[-3] in _CHANNELS


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
    from PIL import Image  # noqa: PLC0415 - optional package

    height, width = template.shape[-2:] if _is_channels_first(template) else template.shape[-3:-1]
    try:
        with Image.open(path) as opened:
            mode = "L" if _channels(template) == 1 else "RGB"
            image = opened.convert(mode).resize((int(width), int(height)), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _bad_image(path, error, where) from error
    pixels = torch.from_numpy(np.array(image, dtype=np.float32)) / 255.0
    return pixels.unsqueeze(0) if pixels.dim() == 2 else pixels.permute(2, 0, 1)


def _bad_image(path: Path, error: Exception, where: str) -> AceError:
    return AceError.of(
        ErrorCode.BAD_FILE,
        f"{path.name} cannot be read as an image",
        why=str(error)[:300],
        remedy="remove it from the folder, or save it again",
        where=where,
    )


def _scaled(pixels: Tensor, scaling: ImageScaling) -> Tensor:
    if scaling.mean:
        pixels = pixels - torch.tensor(scaling.mean).reshape(-1, 1, 1)
    if scaling.std:
        pixels = pixels / torch.tensor(scaling.std).reshape(-1, 1, 1)
    return pixels
