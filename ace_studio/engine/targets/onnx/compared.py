"""Compares an ONNX model that a library rewrote with the model before, so that a rewriter is not believed."""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.shared.flat_call import as_numpy

_SCALE_SHARE = 0.01
"""Numbers that differ by less of the largest one are alike: folded batch norms round in another way."""
_MOST_UNLIKE = 0.1
"""The share of unlike elements of a result above which it is another one; a few change places where scores are near."""

Feed = Mapping[str, Tensor]
"""Name of an input -> its values."""


def alike_or_before(changed: Any, before: Any, feeds: Sequence[Feed]) -> Any:
    """``changed`` if it is about what ``before`` is, else ``before``: both are a ``ModelProto``.

    Both run in ONNX Runtime, unoptimized, on the feeds and on the first with zeros for its floats. Where that is not
    installed, or cannot run ``before``, nothing is known, and ``changed`` is taken.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return changed
    silence = {name: torch.zeros_like(one) if one.is_floating_point() else one for name, one in feeds[0].items()}
    all_feeds = [*feeds, silence]
    try:
        expected = list(_results(before, all_feeds))
    except Exception:  # noqa: BLE001 - border: an operator may be one that only another runtime has
        return changed
    try:
        pairs = zip(expected, _results(changed, all_feeds), strict=True)
        is_alike = all(_are_alike(*pair) for results in pairs for pair in zip(*results, strict=True))
    except Exception:  # noqa: BLE001 - border: what the rewriter made is not valid, in the runtime's words
        is_alike = False
    return changed if is_alike else before


def _results(model: Any, feeds: Sequence[Feed]) -> Iterator[list[Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_session_config_entry("session.disable_prepacking", "1")
    onnxruntime.set_seed(0)  # for operators that draw numbers
    with hushed():
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {one.name for one in session.get_inputs()}
    for feed in feeds:
        yield session.run(None, {name: as_numpy(one) for name, one in feed.items() if name in names})


def _are_alike(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = (array.astype(np.float64) for array in (one, other))
    scale = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        unlike = ~np.isclose(one, other, rtol=0.0, atol=_SCALE_SHARE * scale, equal_nan=True)
    return not unlike.size or bool(unlike.mean() <= _MOST_UNLIKE)
