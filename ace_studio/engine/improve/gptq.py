"""GPTQ: the weights of a linear layer are rounded one input after the other; those to come make up for each error."""

from __future__ import annotations

import torch
from torch import Tensor

from ace_studio.engine.improve.edits import Layer, Site, WeightEditor
from ace_studio.engine.improve.watch import Workshop, watch_values
from ace_studio.engine.quantize.affine import AffineGrid, affine_grid, symmetric_grid
from ace_studio.records.plan import Precision
from ace_studio.records.recipe import ImproveMethod

WIDEST = 8192
"""Layers with more inputs are left: the matrix of their inputs' products would need gigabytes."""
_DAMPING = 0.01
"""Added to the diagonal, as a part of its mean."""
_BITS = {Precision.INT8_WEIGHT: 8, Precision.INT4_WEIGHT: 4}
_LINEAR = frozenset({"aten.linear.default", "aten.mm.default", "aten.matmul.default"})


def gptq(shop: Workshop, layers: list[Layer]) -> tuple[list[Layer], str]:
    """Round the weights of all linear layers that are planned at int8-weight or int4-weight.

    The results lie on the very grid that a target finds for them: the largest (and smallest) weight of every group is
    kept, so that its step stays.

    Source: Frantar et al. 2022, arXiv:2210.17323, algorithm 1, without reordering.
    Returns: New layers (at most one) and why there are none.
    """
    editor = WeightEditor(shop.captured, layers)
    sites = [
        site
        for site in editor.sites
        if shop.plan.precision.get(site.op_id) in _BITS
        and str(site.node.target) in _LINEAR
        and _rows(editor, site).shape[1] <= WIDEST
    ]
    if not sites:
        return [], "no linear layer is planned at int8-weight or int4-weight"
    graph_module = shop.float_module(layers)
    for index, site in enumerate(sites):
        shop.reporter.advance(index / len(sites), f"GPTQ of {site.op_id}")
        products = _input_products(shop, graph_module, site)
        scheme = shop.plan.scheme_of(site.op_id)
        bits = _BITS[shop.plan.precision[site.op_id]]
        rows = _rows(editor, site)
        rounded = round_rows(rows, products, bits=bits, group_size=scheme.group_size)
        value = rounded if site.role.channel_axis == 0 else rounded.t().contiguous()
        editor.set(site.weight, value, owner=site.op_id)
    return [editor.layer(ImproveMethod.GPTQ, is_exact=False)], ""


def _rows(editor: WeightEditor, site: Site) -> Tensor:
    weight = editor.tensor(site.weight)
    return weight if site.role.channel_axis == 0 else weight.t()


def _input_products(shop: Workshop, graph_module: torch.fx.GraphModule, site: Site) -> Tensor:
    """Sum of x x^T over all inputs of a layer, [in, in], float64."""
    source = site.node.args[site.role.data]
    total: list[Tensor] = []

    def visit(name: str, value: Tensor) -> None:
        del name
        flat = value.flatten(0, -2).float()
        total[:] = [flat.t() @ flat + (total[0] if total else 0.0)]

    assert isinstance(source, torch.fx.Node)  # a product of a stored weight with something computed
    watch_values(graph_module, shop.work, {source.name}, visit)
    return total[0].double()


def round_rows(rows: Tensor, products: Tensor, *, bits: int, group_size: int) -> Tensor:
    """Rows of a weight rounded to grids per group of neighbours, with the least error on the inputs that were seen.

    Args:
        rows: [outputs, inputs].
        products: Sum of x x^T over the inputs, [inputs, inputs].
        bits: 8 (symmetric) or 4 (affine), as `fake_quantize.round_weight` rounds.
        group_size: Neighbours that share a step; 0: the whole row.

    Returns: [outputs, inputs], each value on its group's grid.
    """
    factor = _inverse_factor(products)
    present, result = rows.double().clone(), torch.empty_like(rows)
    width = rows.shape[1]
    size = group_size or width
    for start in range(0, width, size):
        stop = min(start + size, width)
        grid, pinned = _group_grid(rows[:, start:stop], is_short=stop - start < size, bits=bits)
        errors = torch.zeros(rows.shape[0], stop - start, dtype=torch.float64)
        for column in range(start, stop):
            wanted = present[:, column].float()
            original = rows[:, column]
            rounded = grid.round_trip(torch.where(pinned[:, column - start], original, wanted)[:, None])[:, 0]
            result[:, column] = rounded
            error = (present[:, column] - rounded.double()) / factor[column, column]
            present[:, column:stop] -= error[:, None] * factor[column, column:stop]
            errors[:, column - start] = error
        present[:, stop:] -= errors @ factor[start:stop, stop:]
    return result


def _inverse_factor(products: Tensor) -> Tensor:
    """Upper Cholesky factor of the damped inverse; inputs that were always 0 stand alone."""
    damped = products.clone()
    diagonal = damped.diagonal()
    diagonal[diagonal == 0.0] = 1.0
    diagonal += _DAMPING * diagonal.mean()
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    factor: Tensor = torch.linalg.cholesky(inverse, upper=True)
    return factor


def _group_grid(group: Tensor, *, is_short: bool, bits: int) -> tuple[AffineGrid, Tensor]:
    """The grid that a target finds for the group, [outputs], and which weights must stay for it to be found again."""
    if bits == 4:
        low, high = group.amin(1), group.amax(1)
        if is_short:  # filled up with zeros
            low, high = low.clamp(max=0.0), high.clamp(min=0.0)
        pinned = (group == low[:, None]) | (group == high[:, None])
        return affine_grid(low, high, bits=4, axis=0), pinned
    size = group.abs().amax(1)
    return symmetric_grid(size, bits=bits, axis=0), group.abs() == size[:, None]
