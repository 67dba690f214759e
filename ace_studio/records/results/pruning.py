"""The report of a pruning, layer by layer: a preview, and ``pruning`` in ``result.json``."""

import msgspec


class PrunedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """One convolution or linear layer, before and after."""

    module: str
    """Dotted path."""
    type: str
    """Class name."""
    shape_before: str
    """Of the weight, such as ``64x3x7x7``."""
    shape_after: str
    weights_before: int
    weights_after: int
    """Weights that are not zero."""
    macs_before: int
    """Multiply-adds of one call of the model on the first example."""
    macs_after: int
    """The same after pruning; zeros that a runtime still multiplies are counted."""
    bytes_before: int
    bytes_after: int
    """Stored bytes of weight and bias; zeros take space too."""
    sqnr_db: float | None = None
    """Fidelity of the model's outputs if only this layer is pruned; None where that was not tried."""


class KeptLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer that is not pruned, with the reason."""

    module: str
    reason: str


class PruningReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one pruning does to a model, found by running the pruned module; nothing is built for it."""

    method: str
    amount: float
    """What was asked for: fraction of the weights (unstructured) or of the channels (structured) that goes."""
    pattern: str = ""
    """``2:4`` for N:M; empty for other methods."""
    importance: str = "magnitude"
    layers: tuple[PrunedLayer, ...] = ()
    kept: tuple[KeptLayer, ...] = ()
    parameters_before: int = 0
    parameters_after: int = 0
    """Of the whole model, without weights that were masked."""
    macs_before: int = 0
    macs_after: int = 0
    """Of all convolutions and linear layers."""
    bytes_before: int = 0
    bytes_after: int = 0
    """Of all parameters and buffers as they are stored."""
    sqnr_db: float | None = None
    """Fidelity of the outputs to the original's, before any fine-tuning."""
    metric_before: float | None = None
    metric_after: float | None = None
    speed: str = ""
    """What to expect of latency, in a sentence."""
    seconds: float = 0.0
