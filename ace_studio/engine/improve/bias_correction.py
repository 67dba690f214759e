"""Bias correction: the mean error that rounding gives each op, taken out of its bias."""

from __future__ import annotations

from torch import Tensor

from ace_studio.engine.improve.edits import Layer, Site, WeightEditor
from ace_studio.engine.improve.watch import Workshop
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod


def correct_biases(shop: Workshop, layers: list[Layer]) -> tuple[list[Layer], str]:
    """Add to each bias the mean, per output channel, of the op's float result minus its rounded one.

    The means are those of each op alone, on float inputs, so that no error is counted again behind it. A batch norm
    that is folded into its convolution gives its shift for a bias.

    Source: Nagel et al. 2019, arXiv:1906.04721, section 4.2 (with data).
    Returns: New layers (at most one) and why there are none.
    """
    editor = WeightEditor(shop.captured, layers)
    sites = {site.op_id: site for site in editor.sites if shop.is_low(site.op_id) and editor.shift_name(site)}
    if not sites:
        return [], "no rounded op has a bias of its own"
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}

    def visit(op_id: str, precision: Precision, wide: Tensor, rounded: Tensor) -> None:
        del precision
        error = (wide - rounded).double().movedim(_channel_axis(sites[op_id]), 0).flatten(1)
        sums[op_id] = sums.get(op_id, 0.0) + error.sum(1)
        counts[op_id] = counts.get(op_id, 0) + error.shape[1]

    simulator = shop.simulator(layers)
    wanted = {op_id: (shop.plan.precision[op_id],) for op_id in sites}
    for example in shop.work:
        shop.reporter.check()
        simulator.local(wanted, example, visit=visit, schemes=shop.plan.scheme_of)
    for op_id, total in sums.items():
        name = editor.shift_name(sites[op_id])
        if counts[op_id]:
            editor.set(name, editor.tensor(name) + (total / counts[op_id]).float(), owner=op_id)
    return [editor.layer(ImproveMethod.BIAS_CORRECTION, is_exact=False)], ""


def _channel_axis(site: Site) -> int:
    return 1 if is_convolution(str(site.node.target)) else -1
