"""Bias correction: the mean error of each rounded op is subtracted by its bias."""

from __future__ import annotations

from torch import Tensor

from ace_studio.engine.improve.job import ImproveJob
from ace_studio.engine.improve.weights import NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod


def correct_biases(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Add to each bias the mean, per output channel, of the op's float result minus its rounded one.

    The means are those of each op alone, on float inputs, so that no error is counted again behind it. A batch norm
    that is folded into its convolution gives its shift for a bias.

    Source: Nagel et al. 2019, arXiv:1906.04721, section 4.2 (with data).
    """
    editor = WeightEditor(job.captured, changes)
    sites = {site.op_id: site for site in editor.sites if job.is_low(site.op_id) and editor.shift_name(site)}
    if not sites:
        return NoChange("no rounded op has a bias of its own")
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}

    def visit(op_id: str, _: Precision, wide: Tensor, rounded: Tensor) -> None:
        error = (wide - rounded).double().movedim(_channel_axis(sites[op_id]), 0).flatten(1)
        sums[op_id] = sums.get(op_id, 0.0) + error.sum(1)
        counts[op_id] = counts.get(op_id, 0) + error.shape[1]

    simulator = job.simulator(changes)
    wanted = {op_id: (job.plan.precision_of(op_id),) for op_id in sites}
    for example in job.work:
        job.reporter.check()
        simulator.local(wanted, example, visit=visit, schemes=job.plan.scheme_of)
    for op_id, total in sums.items():
        name = editor.shift_name(sites[op_id])
        if counts[op_id]:
            editor.set(name, editor.tensor(name) + (total / counts[op_id]).float(), owner=op_id)
    return editor.change(ImproveMethod.BIAS_CORRECTION, is_exact=False)


def _channel_axis(site: Site) -> int:
    return 1 if is_convolution(str(site.node.target)) else -1
