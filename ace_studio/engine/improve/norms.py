"""SmoothQuant and AWQ: a scale moves between a norm and the linear layers that alone read its result.

SmoothQuant moves outliers of the activations into the weights. AWQ scales weights that meet large activations up before
they are rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.families import IDENTITIES, LINEAR_OPS
from ace_studio.engine.quantize.fake_quantize import round_weight
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision
from ace_studio.records.recipes.recipe import ImproveMethod

ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""How far SmoothQuant goes: 0 leaves all in the activations, 1 moves all into the weights."""
STRENGTHS = tuple(index / 10 for index in range(11))
"""Exponents of the mean activation that AWQ tries; 0 changes nothing."""
_ROWS = 512
"""Inputs that AWQ makes a choice on, at even distances."""
_FACTORS = (1e-4, 1e4)
_PLACES = {"aten.layer_norm.default": (2, 3), "aten.rms_norm.default": (2,), "aten.native_layer_norm.default": (2, 3)}
"""Places of a norm's stored scale and shift."""


@dataclass(frozen=True)
class NormSite:
    """One norm and the layers that read it."""

    source: fx.Node
    """Gives the normed value, [..., C]."""
    parameters: tuple[str, ...]
    """Names of what the result is linear in: scale, and shift if there is one."""
    readers: tuple[Site, ...]

    def divide(self, editor: WeightEditor, factor: Tensor) -> None:
        """Divide the normed value by the factor [C] and multiply the readers' weights with it."""
        for name in self.parameters:
            editor.set(name, editor.tensor(name) / factor)
        for reader in self.readers:
            editor.scale_inputs(reader, factor)

    def input_size(self, editor: WeightEditor) -> Tensor:
        """Largest magnitude of the readers' weights per input, [C]."""
        return torch.stack([editor.rows(reader).abs().amax(0) for reader in self.readers]).amax(0)


def find_norm_sites(editor: WeightEditor) -> list[NormSite]:
    """Every norm all of whose readers are linear layers with weights of their own, in graph order."""
    by_node = {site.node: site for site in editor.sites if str(site.node.target) in LINEAR_OPS}
    found = []
    for node in editor.graph_module.graph.nodes:
        parameters = _parameters(editor, node)
        readers = _readers(node)
        if parameters and readers and all(reader in by_node for reader in readers):
            found.append(NormSite(node, parameters, tuple(by_node[reader] for reader in readers)))
    return found


def _parameters(editor: WeightEditor, node: fx.Node) -> tuple[str, ...]:
    """Names of a norm's scale and shift; empty if they are not all stored."""
    if node.op != "call_function":
        return ()
    if str(node.target) == "aten.mul.Tensor":  # the end of a norm written as single ops
        names = [editor.stored(argument) for argument in node.args]
        stored = [name for name in names if name and editor.tensor(name).dim() == 1]
        return tuple(stored) if len(stored) == 1 else ()
    places = _PLACES.get(str(node.target), ())
    given = [node.args[place] for place in places if len(node.args) > place and node.args[place] is not None]
    stored = [editor.stored(argument) for argument in given]
    has_scale = bool(places) and len(node.args) > places[0] and node.args[places[0]] is not None
    return tuple(stored) if has_scale and all(stored) and editor.tensor(stored[0]).dim() == 1 else ()


def _readers(node: fx.Node) -> list[fx.Node]:
    """The readers of a value, looked for through identities."""
    found = []
    for user in node.users:
        found += _readers(user) if str(user.target) in IDENTITIES else [user]
    return found


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
        factor = (factor / (factor.max() * factor.min()).sqrt()).clamp(*_FACTORS)
        error = sum(_error(job, editor, reader, inputs, factor) for reader in site.readers)
        if error < best_error:
            best, best_error = (factor if strength else None), error
    return best


def _error(job: ImproveJob, editor: WeightEditor, reader: Site, inputs: Tensor, factor: Tensor) -> float:
    """Squared error of a reader's result after its weight was scaled and rounded."""
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
