"""Proposes example inputs from the configuration of a Hugging Face model: two calls of different batch and length."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeGuard

import torch

from ace_studio.engine.load.proposals import ProposedInput, ProposedRow
from ace_studio.records.tensors import ValueSource

_SIZES = ((1, 16), (2, 24))
"""Batch and length of the two examples; sizes that differ are candidates for dynamic ones."""
_DECODER_SHARE = 2
"""Ratio of the encoder's text length to the decoder's."""
_DEFAULT_SIDE, _DEFAULT_CHANNELS = 224, 3
_WAVE_SAMPLES = 400
"""Audio samples per unit of length: 16 units give the usual convolutions a few frames."""
_SPECIAL_POSITIONS = 2
"""Some families keep the first positions for padding."""

Config = Mapping[str, Any]


def config_rows(config: Config, accepted: Collection[str] | None = None) -> tuple[ProposedRow, ...]:
    """Two rows, or none if the configuration does not determine the inputs.

    Args:
        config: The content of ``config.json``, with that of ``preprocessor_config.json`` and of
            ``tokenizer_config.json`` under ``preprocessor`` and ``tokenizer``.
        accepted: Parameters of forward; None if they are not known. Other inputs are left out.
    """
    rows = []
    for batch, length in _SIZES:
        proposed = [one for make in _MAKERS for one in make(config, batch, length)]
        row = {one.name: one for one in proposed if accepted is None or one.name in accepted}
        rows.append(tuple(row.values()))
    return tuple(rows) if all(rows) else ()


def _text(config: Config, batch: int, length: int) -> list[ProposedInput]:
    text = _part(config, "text_config")
    vocabulary = _number(text, "vocab_size")
    if not vocabulary or _is_sound(config):
        return []
    positions = _number(text, "max_position_embeddings", "n_positions", "max_sequence_length")
    longest = _number(_part(config, "tokenizer"), "model_max_length")
    positions = min(filter(None, (positions, longest)), default=0)
    fitting = min(length, max(1, positions - _SPECIAL_POSITIONS)) if positions > 0 else length
    inputs = [_ids("input_ids", (batch, fitting), vocabulary), _mask("attention_mask", (batch, fitting))]
    if config.get("is_encoder_decoder"):
        inputs.append(_ids("decoder_input_ids", (batch, max(1, fitting // _DECODER_SHARE)), vocabulary))
    return inputs


def _pictures(config: Config, batch: int, _: int) -> list[ProposedInput]:
    vision = _part(config, "vision_config")
    if not any(key in vision for key in ("image_size", "patch_size", "num_channels")) or _is_sound(config):
        return []
    pictures = config.get("preprocessor", {})
    offered = (vision.get("image_size"), pictures.get("crop_size"), pictures.get("size"), _DEFAULT_SIDE)
    side = next(side for size in offered if (side := _sides(size)))
    frames = [_number(vision, "num_frames")] if _number(vision, "num_frames") else []
    channels = _number(vision, "num_channels") or _DEFAULT_CHANNELS
    return [ProposedInput("pixel_values", (batch, *frames, channels, *side), span=_pixel_span(pictures))]


def _sides(size: Any) -> list[int]:
    """Height and width of a number, a pair, or a table of a preprocessor; empty if it says neither."""
    if isinstance(size, dict):
        edge = size.get("shortest_edge")
        size = [size.get("height", edge), size.get("width", edge)]
    side = list(size) if isinstance(size, list | tuple) and len(size) == 2 else [size, size]
    return side if all(isinstance(number, int) and number > 0 for number in side) else []


def _pixel_span(pictures: Config) -> tuple[float, float] | None:
    """The lowest and highest value that the preprocessor gives; None if it does not say."""
    if not pictures.get("do_rescale", True):
        return None
    if not pictures.get("do_normalize", "image_mean" in pictures):
        return (0.0, 1.0) if pictures else None
    means, deviations = pictures.get("image_mean"), pictures.get("image_std")
    if not (_are_numbers(means) and _are_numbers(deviations) and len(means) == len(deviations) and all(deviations)):
        return None
    pairs = list(zip(means, deviations, strict=True))
    lowest, highest = min(-mean / by for mean, by in pairs), max((1 - mean) / by for mean, by in pairs)
    return round(lowest, 3), round(highest, 3)


def _are_numbers(values: Any) -> TypeGuard[list[float]]:
    return isinstance(values, list) and bool(values) and all(isinstance(one, int | float) for one in values)


def _sound(config: Config, batch: int, length: int) -> list[ProposedInput]:
    """Raw audio, or a spectrogram with as many frames as the model has positions."""
    if not _is_sound(config):
        return []
    bands = _number(config, "num_mel_bins")
    if not bands:
        return [ProposedInput("input_values", (batch, length * _WAVE_SAMPLES))]
    if config.get("is_encoder_decoder"):
        frames = 2 * _number(config, "max_source_positions")
        decoder = _ids("decoder_input_ids", (batch, length // _DECODER_SHARE), _number(config, "vocab_size"))
        return [ProposedInput("input_features", (batch, bands, frames)), decoder]
    return [ProposedInput("input_values", (batch, _number(config, "max_length") or 1024, bands))]


def _is_sound(config: Config) -> bool:
    """Whether the model takes audio: a spectrogram, or raw audio for a stack of convolutions."""
    return bool(_number(config, "num_mel_bins")) or ("conv_dim" in config and "conv_stride" in config)


_MAKERS: tuple[Callable[[Config, int, int], list[ProposedInput]], ...] = (_text, _pictures, _sound)


def _ids(name: str, shape: tuple[int, ...], vocabulary: int) -> ProposedInput:
    return ProposedInput(name, shape, dtype=torch.int64, below=vocabulary)


def _mask(name: str, shape: tuple[int, ...]) -> ProposedInput:
    return ProposedInput(name, shape, dtype=torch.int64, values=ValueSource.ONES)


def _part(config: Config, name: str) -> Config:
    """The configuration of one part of a multimodal model; the whole configuration if there is none."""
    part = config.get(name)
    return part if isinstance(part, dict) else config


def _number(config: Config, *names: str) -> int:
    """The first of the entries that is an integer; 0 if none is."""
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), 0)


def parameters_of(owner: Any) -> frozenset[str]:
    """Parameter names of the forward of a module or of its class."""
    return frozenset(inspect.signature(owner.forward).parameters)
