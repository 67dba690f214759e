"""AWQ: weights that meet large activations are scaled up before rounding, and the norm before them down."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.improve.norm_sites import NormSite, find_norm_sites
from ace_studio.engine.quantize.fake_quantize import round_weight
from ace_studio.records.recipes.plan import WEIGHT_ONLY
from ace_studio.records.recipes.recipe import ImproveMethod

STRENGTHS = tuple(index / 10 for index in range(11))
"""Exponents of the mean activation that are tried; 0 changes nothing."""
_ROWS = 512
"""Inputs that a choice is made on, at even distances."""


def awq(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Scale each input of the layers behind a norm by ``mean|x|^a``, with the ``a`` of the smallest error per norm.

    Source: Lin et al. 2023, arXiv:2306.00978, section 3.2, without clipping.
    """
    editor = WeightEditor(job.captured, changes)
    sites = [
        site
        for site in find_norm_sites(editor)
        if all(job.plan.precision_of(reader.op_id) in WEIGHT_ONLY for reader in site.readers)
    ]
    if not sites:
        return NoChange("no norm is read by weight-only layers alone")
    samples: dict[str, list[Tensor]] = {}
    job.visit_inputs(
        changes,
        {site.source.name for site in sites},
        lambda name, value: samples.setdefault(name, []).append(value.flatten(0, -2)),
    )
    changed = False
    for site in sites:
        job.reporter.check()
        factor = _best_factor(job, editor, site, samples.pop(site.source.name))
        if factor is not None:
            site.divide(editor, factor)
            changed = True
    return editor.change(ImproveMethod.AWQ, is_exact=True) if changed else NoChange("no scale was better than none")


def _best_factor(job: ImproveJob, editor: WeightEditor, site: NormSite, seen: Sequence[Tensor]) -> Tensor | None:
    """The scale [C] with the smallest squared error of the readers' results; None if that is no scale at all."""
    inputs = torch.cat(list(seen))
    inputs = inputs[:: max(1, len(inputs) // _ROWS)]
    mean = torch.cat(list(seen)).abs().mean(0).clamp(min=1e-4)
    best, best_error = None, float("inf")
    for strength in STRENGTHS:
        factor = mean**strength
        factor = (factor / (factor.max() * factor.min()).sqrt()).clamp(1e-4, 1e4)
        error = sum(_error(job, editor, reader, inputs, factor) for reader in site.readers)
        if error < best_error:
            best, best_error = (factor if strength else None), error
    return best


def _error(job: ImproveJob, editor: WeightEditor, reader: Site, inputs: Tensor, factor: Tensor) -> float:
    weight = editor.tensor(reader.weight)
    along = factor if reader.role.channel_axis == 0 else factor[:, None]
    scaled = weight * along
    rounded = round_weight(
        scaled,
        reader.role.weight_axes(reader.node, scaled),
        precision=job.plan.precision_of(reader.op_id),
        scheme=job.plan.scheme_of(reader.op_id),
    )
    difference = rounded / along - weight
    product = inputs @ (difference.t() if reader.role.channel_axis == 0 else difference)
    return float(product.double().square().sum())
