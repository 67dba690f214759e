"""torch's own transformer layers traced as the ops that they consist of."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import transformer

from ace_studio.engine.replaced import replaced_attribute

_forward = nn.TransformerEncoder.forward


@contextlib.contextmanager
def encoder_layers_as_plain_ops() -> Iterator[None]:
    """Trace ``nn.TransformerEncoder`` and ``nn.MultiheadAttention`` without the operators that fuse a whole layer.

    No other runtime has those, and no 8-bit kernel is in them. A mask is not compared with a causal one either: that
    branches on its values, and the attention with the mask gives the same.
    """
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            replaced_attribute(transformer, "_detect_is_causal_mask", _is_said_to_be_causal),
            replaced_attribute(nn.TransformerEncoder, "forward", _encode),
        ):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)


def _is_said_to_be_causal(_mask: object, is_causal: bool | None = None, *_: Any, **__: Any) -> bool:
    return is_causal is True


def _encode(
    self: nn.TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """Zeros at padded places, where eager packs the others into a nested tensor, which a graph cannot hold.

    Eager does so if the padding of every row is at its end; the capture is compared with eager anyway.
    """
    may_pack = getattr(self, "use_nested_tensor", False) and not self.layers[0].training
    if src_key_padding_mask is None or mask is not None or src.dim() != 3 or not may_pack:
        return _forward(self, src, mask, src_key_padding_mask, is_causal)
    output = src
    for layer in self.layers:
        output = layer(output, src_key_padding_mask=src_key_padding_mask)
    output = output.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0.0)
    return output if self.norm is None else self.norm(output)
