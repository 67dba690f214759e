"""A target from outside of the package, whole in this file: eager with stored numbers cut to 16 bits of fraction."""

import torch

from ace_studio.engine.quantize.apply import apply_plan
from ace_studio.engine.quantize.flat_graph import add_constant, constant_of, tidy
from ace_studio.engine.targets.base import Lowered, LoweringJob
from ace_studio.engine.targets.torch.eager import EagerLowered, EagerTarget
from ace_studio.records.targets import TargetRow

ROW = TargetRow(
    name="toy",
    label="Toy runtime",
    implementation=f"{__file__}:ToyTarget",
    opener="eager",
    times_source="the stop watch of the toy",
    is_soon_built=True,
)


class ToyTarget(EagerTarget):
    """Eager that rounds."""

    def build(self, job: LoweringJob) -> Lowered:
        """Apply the plan as eager does, then round every floating-point constant."""
        rewritten = apply_plan(job.captured, job.plan, calibration=job.calibration, reporter=job.reporter)
        graph_module = rewritten.graph_module
        for node in graph_module.graph.find_nodes(op="get_attr"):
            stored = constant_of(graph_module, node)
            if stored is not None and stored.is_floating_point():
                cut = (stored.view(torch.int32) & -128).view(stored.dtype)
                rounded = add_constant(graph_module, "rounded", cut, before=node)
                node.replace_all_uses_with(rounded)
        tidy(graph_module)
        return EagerLowered(job, rewritten, graph_module)
