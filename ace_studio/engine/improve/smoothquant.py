"""SmoothQuant: outliers of the activations behind a norm move into the weights of the layers that read it."""

import torch
from torch import Tensor

from ace_studio.engine.improve.job import ImproveJob, NoChange, WeightChange, WeightEditor
from ace_studio.engine.improve.norm_sites import find_norm_sites
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod

ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""How far: 0 leaves all in the activations, 1 moves all into the weights."""
_FACTORS = (1e-4, 1e4)


def smoothquant(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Divide each normed channel by ``s = max|x|^alpha / max|w|^(1 - alpha)``; alpha is the best of `ALPHAS`.

    Source: Xiao et al. 2022, arXiv:2211.10438, equation 4.
    """
    if not job.plan.precisions & {Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.FP8}:
        return NoChange("the plan leaves activations in float")
    sites = find_norm_sites(WeightEditor(job.captured, changes))
    if not sites:
        return NoChange("no norm is read by linear layers only")
    largest: dict[str, Tensor] = {}

    def visit(name: str, value: Tensor) -> None:
        seen = value.abs().flatten(0, -2).amax(0)
        largest[name] = torch.maximum(largest[name], seen) if name in largest else seen

    job.visit_inputs(changes, {site.source.name for site in sites}, visit)
    references = job.references(job.work)
    scored = []
    for alpha in ALPHAS:
        job.reporter.check()
        change = _smoothed(job, changes, largest, alpha)
        scored.append((job.fidelity_db([*changes, change], references), change))
    return max(scored, key=lambda pair: pair[0])[1]


def _smoothed(job: ImproveJob, changes: list[WeightChange], largest: dict[str, Tensor], alpha: float) -> WeightChange:
    editor = WeightEditor(job.captured, changes)
    for site in find_norm_sites(editor):
        seen, weights = largest[site.source.name].clamp(min=1e-8), site.input_size(editor).clamp(min=1e-8)
        site.divide(editor, (seen**alpha / weights ** (1.0 - alpha)).clamp(*_FACTORS))
    return editor.change(ImproveMethod.SMOOTHQUANT, is_exact=True)
