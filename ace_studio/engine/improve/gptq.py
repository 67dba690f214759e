"""GPTQ: weights of a linear layer are rounded input by input; the inputs still to come compensate each error."""

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.families import LINEAR_OPS
from ace_studio.engine.quantize.affine import AffineGrid, affine_grid, symmetric_grid
from ace_studio.records.recipes.plan import WEIGHT_BITS
from ace_studio.records.recipes.recipe import ImproveMethod

WIDEST = 8192
"""Layers with more inputs are skipped: the matrix of products of their inputs would need gigabytes."""
PRODUCT_BYTES = 1 << 30
"""Bytes of products of inputs that are kept at a time."""
_DAMPING = 0.01
"""Added to the diagonal, as a part of its mean."""


def gptq(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Round the weights of all linear layers that are planned at int8-weight or int4-weight.

    The results lie on the very grid that a target finds for them: the largest (and smallest) weight of every group is
    kept, so that its scale stays.

    Source: Frantar et al. 2022, arXiv:2210.17323, algorithm 1, without reordering.
    """
    editor = WeightEditor(job.captured, changes)
    sites = [
        site
        for site in editor.sites
        if job.plan.precision_of(site.op_id) in WEIGHT_BITS
        and str(site.node.target) in LINEAR_OPS
        and editor.rows(site).shape[1] <= WIDEST
    ]
    if not sites:
        return NoChange("no linear layer is planned at int8-weight or int4-weight")
    done = 0
    for batch in _batches(editor, sites):
        products = _input_products(job, changes, {_source(site) for site in batch})
        for site in batch:
            job.reporter.advance(done / len(sites), f"GPTQ of {site.op_id}")
            _round_site(job, editor, site, products[_source(site)])
            done += 1
    return editor.change(ImproveMethod.GPTQ, is_exact=False)


def _round_site(job: ImproveJob, editor: WeightEditor, site: Site, products: Tensor) -> None:
    bits = WEIGHT_BITS[job.plan.precision_of(site.op_id)]
    group_size = job.plan.scheme_of(site.op_id).group_size
    rounded = gptq_rows(editor.rows(site), products, bits=bits, group_size=group_size)
    value = rounded if site.role.channel_axis == 0 else rounded.t().contiguous()
    editor.set(site.weight, value, owner=site.op_id)


def _source(site: Site) -> str:
    """Name of the node that a layer reads."""
    source = site.node.args[site.role.data]
    assert isinstance(source, torch.fx.Node)  # a product of a stored weight with something computed
    return source.name


def _batches(editor: WeightEditor, sites: Sequence[Site]) -> Iterator[list[Site]]:
    """The sites in order, so many at a time that the products of their inputs fit; layers may share an input."""
    batch: list[Site] = []
    held: dict[str, int] = {}
    for site in sites:
        size = 8 * editor.rows(site).shape[1] ** 2
        if batch and _source(site) not in held and sum(held.values()) + size > PRODUCT_BYTES:
            yield batch
            batch, held = [], {}
        batch.append(site)
        held[_source(site)] = size
    if batch:
        yield batch


def _input_products(job: ImproveJob, changes: Sequence[WeightChange], names: Collection[str]) -> dict[str, Tensor]:
    """Sum of x x^T over all values of each node, [in, in], float64; one pass over the examples."""
    total: dict[str, Tensor] = {}

    def visit(name: str, value: Tensor) -> None:
        job.reporter.check()
        flat = value.flatten(0, -2).float()
        product = (flat.t() @ flat).double()
        total[name] = total[name] + product if name in total else product

    job.visit_inputs(changes, names, visit)
    return total


def gptq_rows(rows: Tensor, products: Tensor, *, bits: int, group_size: int) -> Tensor:
    """Rows of a weight rounded to grids per group of neighbours, with the least error on the inputs that were seen.

    Args:
        rows: [outputs, inputs].
        products: Sum of x x^T over the inputs, [inputs, inputs].
        bits: 8 (symmetric) or 4 (affine), as `fake_quantize.round_weight` rounds.
        group_size: Neighbours that share a scale; 0: the whole row.

    Returns: [outputs, inputs], each value on its group's grid.
    """
    factor = _inverse_factor(products)
    present, result = rows.double().clone(), torch.empty_like(rows)
    width = rows.shape[1]
    size = group_size or width
    for start in range(0, width, size):
        stop = min(start + size, width)
        grid, pinned = _group_grid(rows[:, start:stop], is_short=stop - start < size, bits=bits)
        errors = torch.zeros_like(present[:, start:stop])
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
