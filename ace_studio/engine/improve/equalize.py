"""Cross-layer equalisation: channels between two layers are scaled to the same size; the float model stays the same."""

from dataclasses import dataclass

import torch
from torch import Tensor, fx

from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.families import ADAPTIVE_POOLS, AVERAGE_POOLS, IDENTITIES, LEAKY_RELUS, MAX_POOLS, RELUS
from ace_studio.engine.ops.roles import OpRole, is_convolution, op_role
from ace_studio.records.recipes.recipe import ImproveMethod

_HOMOGENEOUS = IDENTITIES | RELUS | LEAKY_RELUS | MAX_POOLS | AVERAGE_POOLS | ADAPTIVE_POOLS
"""``f(s x) = s f(x)`` for every s > 0, channel by channel."""
_LARGEST_FACTOR = 1e4
_SWEEPS = 8
_STRENGTHS = (0.25, 0.5, 0.75)
"""How much of the activations' spread is moved into the next layer's weights."""


@dataclass(frozen=True)
class Pair:
    """Two layers with nothing but homogeneous ops between them."""

    first: Site
    """A product, or a batch norm that is behind none."""
    second: Site


def find_pairs(editor: WeightEditor) -> list[Pair]:
    """Every pair in the graph, in order."""
    by_node = {site.node: site for site in editor.sites}
    pairs = []
    for first in [*editor.sites, *_lone_norms(editor)]:
        node = _follow(first.result)
        second = by_node.get(node) if node is not None else None
        if second is not None and editor.can_scale_outputs(first) and _widths_fit(editor, first, second):
            pairs.append(Pair(first, second))
    return pairs


def _lone_norms(editor: WeightEditor) -> list[Site]:
    """The batch norms that are folded into nothing, such as those behind a ReLU: sites without a weight."""
    folded = {site.norm for site in editor.sites}
    found = editor.graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)
    return [Site(node, OpRole(0, 1, 0), "", "", norm=node) for node in found if node not in folded and not node.args[5]]


def _follow(node: fx.Node) -> fx.Node | None:
    """The only product that reads a value, through homogeneous ops; None if there is another reader on the way."""
    while len(node.users) == 1:
        user = next(iter(node.users))
        role = op_role(str(user.target))
        if role is not None:
            return user if len(user.args) > role.data and user.args[role.data] is node else None
        if str(user.target) not in _HOMOGENEOUS and not _pads_with_zeros(user):
            return None
        node = user
    return None


def _pads_with_zeros(node: fx.Node) -> bool:
    """Whether a node widens the last two dimensions at most, and not by a constant of its own."""
    if str(node.target) not in ("aten.pad.default", "aten.constant_pad_nd.default"):
        return False
    has_constant = any(isinstance(one, int | float) and one != 0 for one in node.args[2:])
    value = node.meta.get("val")
    widths = node.args[1]
    is_inner = isinstance(widths, list | tuple) and isinstance(value, Tensor) and len(widths) // 2 <= value.dim() - 2
    return is_inner and not has_constant


def _widths_fit(editor: WeightEditor, first: Site, second: Site) -> bool:
    return _outputs(editor, first) == _inputs(editor, second)


def _outputs(editor: WeightEditor, site: Site) -> int:
    if not site.weight and site.norm is not None:
        return len(editor.tensor(editor.stored(site.norm.args[1])))
    return int(editor.tensor(site.weight).shape[site.role.channel_axis])


def _inputs(editor: WeightEditor, site: Site) -> int:
    weight = editor.tensor(site.weight)
    return int(weight.shape[1]) * site.groups if site.role.channel_axis == 0 else int(weight.shape[0])


def equalize(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """The better of two ways to choose the scales: by the weights of both layers, or by activations and weights.

    By weights, ``s = sqrt(largest |w1| / largest |w2|)`` per channel: what one scale per tensor asks for. With a scale
    per channel the first layer's scale costs nothing, so activations may be evened out instead.

    Source: Nagel et al. 2019, arXiv:1906.04721, section 4.1; Xiao et al. 2022, arXiv:2211.10438, for the second way.
    """
    if not find_pairs(WeightEditor(job.captured, changes)):
        return NoChange("no two layers have only ReLU, pooling and the like between them")
    references = job.references(job.work)
    tried = [_by_weights(job, changes), *(_by_activations(job, changes, strength) for strength in _STRENGTHS)]
    scored = [(job.fidelity_db([*changes, change], references), change) for change in tried]
    return max(scored, key=lambda pair: pair[0])[1]


def _by_weights(job: ImproveJob, changes: list[WeightChange]) -> WeightChange:
    editor = WeightEditor(job.captured, changes)
    pairs = find_pairs(editor)
    for _ in range(_SWEEPS):
        for pair in pairs:
            first, second = _output_size(editor, pair.first), _input_size(editor, pair.second)
            _scale(editor, pair, torch.sqrt(first / second))
    return editor.change(ImproveMethod.EQUALIZE, is_exact=True)


def _by_activations(job: ImproveJob, changes: list[WeightChange], strength: float) -> WeightChange:
    editor = WeightEditor(job.captured, changes)
    inputs = {pair.second.node.args[pair.second.role.data]: pair for pair in find_pairs(editor)}
    names = {node.name: pair for node, pair in inputs.items() if isinstance(node, fx.Node)}
    largest: dict[str, Tensor] = {}

    def visit(name: str, value: Tensor) -> None:
        axis = 1 if value.dim() > 2 and is_convolution(str(names[name].second.node.target)) else -1
        seen = value.abs().movedim(axis, 0).flatten(1).amax(1)
        largest[name] = torch.maximum(largest[name], seen) if name in largest else seen

    job.visit_inputs(changes, names, visit)
    for name, pair in names.items():
        weights = _input_size(editor, pair.second)
        _scale(editor, pair, largest[name] ** strength / weights ** (1.0 - strength))
    return editor.change(ImproveMethod.EQUALIZE, is_exact=True)


def _scale(editor: WeightEditor, pair: Pair, factor: Tensor) -> None:
    """Divide the first layer's results by the factor and multiply the second's weight with it."""
    usable = factor.isfinite() & (factor > 0)
    middle = factor[usable].log().mean().exp() if bool(usable.any()) else torch.tensor(1.0)
    safe = torch.where(usable, factor / middle, torch.ones_like(factor))
    safe = safe.clamp(1.0 / _LARGEST_FACTOR, _LARGEST_FACTOR)
    editor.scale_outputs(pair.first, 1.0 / safe)
    editor.scale_inputs(pair.second, safe)


def _output_size(editor: WeightEditor, site: Site) -> Tensor:
    """Largest magnitude of the weight per output channel, with the batch norm behind it; of a lone norm, a guess."""
    if not site.weight and site.norm is not None:
        gain, shift = (editor.tensor(editor.stored(argument)) for argument in site.norm.args[1:3])
        return gain.abs() + shift.abs()
    weight = editor.tensor(site.weight).abs()
    size = weight.movedim(site.role.channel_axis, 0).flatten(1).amax(1)
    if site.norm is None:
        return size
    gain, variance = editor.tensor(editor.stored(site.norm.args[1])), editor.tensor(str(site.norm.args[4].target))  # type: ignore[union-attr]
    deviation = (variance + float(site.norm.args[7])).sqrt()  # type: ignore[arg-type]
    folded: Tensor = size * gain.abs() / deviation
    return folded


def _input_size(editor: WeightEditor, site: Site) -> Tensor:
    """Largest magnitude of the weight per input of the op."""
    weight = editor.tensor(site.weight).abs()
    if site.role.channel_axis != 0:
        return weight.amax(1)
    rows = weight.reshape(site.groups, -1, *weight.shape[1:])
    return rows.movedim(2, 1).flatten(2).amax(2).flatten()
