"""Grids of NNCF for values in short ranges."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ace_studio.engine.replaced import replaced_attribute

_OF_NOTHING = 8e-5
"""Range that a value gets that was 0 throughout."""


@contextlib.contextmanager
def short_ranges_kept() -> Iterator[None]:
    """Let NNCF give every range the grid that it has, however short it is, while the block runs.

    NNCF (3.4) moves both ends of an affine range below 8e-4 by 8e-4, and ends a symmetric one at 8e-5 or beyond: of the
    256 steps, small values were left a few, or one. In a depth estimator with values of 1e-5 this cost 10 dB.
    """
    from nncf.quantization import fake_quantize

    with (
        replaced_attribute(fake_quantize, "fix_zero_filters_symmetric", _symmetric_end),
        replaced_attribute(fake_quantize, "fix_zero_filters_asymmetric", _affine_ends),
    ):
        yield


def _symmetric_end(max_values: Any, eps: float = 0.01) -> Any:
    from nncf.tensor import functions as fns

    largest = fns.max(max_values)
    return fns.maximum(fns.where(largest > 0, largest * eps, _OF_NOTHING), max_values)


def _affine_ends(min_values: Any, max_values: Any, eps: float = 0.0) -> tuple[Any, Any]:
    from nncf.tensor import functions as fns

    del eps
    missing = fns.where(max_values > min_values, 0.0, _OF_NOTHING)
    return min_values - missing, max_values + missing
