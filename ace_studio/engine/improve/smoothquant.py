"""SmoothQuant: outliers of the activations behind a norm move into the weights of the layers that read it."""

from __future__ import annotations

import torch
from torch import Tensor

from ace_studio.engine.improve.edits import Layer, WeightEditor
from ace_studio.engine.improve.norm_sites import find_norm_sites
from ace_studio.engine.improve.watch import Workshop, watch_values
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod

ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""How far: 0 leaves all in the activations, 1 moves all into the weights."""
_FACTORS = (1e-4, 1e4)


def smoothquant(shop: Workshop, layers: list[Layer]) -> tuple[list[Layer], str]:
    """Divide each normed channel by ``s = max|x|^alpha / max|w|^(1 - alpha)``; alpha is the best of `ALPHAS`.

    Source: Xiao et al. 2022, arXiv:2211.10438, equation 4.
    Returns: New layers (at most one) and why there are none.
    """
    if not shop.plan.precisions & {Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.FP8}:
        return [], "the plan leaves activations in float"
    editor = WeightEditor(shop.captured, layers)
    sites = find_norm_sites(editor)
    if not sites:
        return [], "no norm is read by linear layers only"
    largest: dict[str, Tensor] = {}

    def visit(name: str, value: Tensor) -> None:
        seen = value.abs().flatten(0, -2).amax(0)
        largest[name] = torch.maximum(largest[name], seen) if name in largest else seen

    watch_values(shop.float_module(layers), shop.work, {site.source.name for site in sites}, visit)
    references = shop.references(shop.work)
    scored = []
    for alpha in ALPHAS:
        shop.reporter.check()
        layer = _smoothed(shop, layers, largest, alpha)
        scored.append((shop.fidelity_db([*layers, layer], references), layer))
    return [max(scored, key=lambda pair: pair[0])[1]], ""


def _smoothed(shop: Workshop, layers: list[Layer], largest: dict[str, Tensor], alpha: float) -> Layer:
    editor = WeightEditor(shop.captured, layers)
    for site in find_norm_sites(editor):
        seen, weights = largest[site.source.name].clamp(min=1e-8), site.input_size(editor).clamp(min=1e-8)
        site.divide(editor, (seen**alpha / weights ** (1.0 - alpha)).clamp(*_FACTORS))
    return editor.layer(ImproveMethod.SMOOTHQUANT, is_exact=True)
