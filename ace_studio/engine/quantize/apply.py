"""A plan applied to the captured graph for the torch targets: the rewritten graph, and the ops it could not change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import fx

from ace_studio.engine.flow import BoundPlan, CapturedModel, Example
from ace_studio.engine.ops.roles import stores_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.casts import HALF_DTYPES, insert_casts
from ace_studio.engine.quantize.flat_graph import flat_graph, put_state_back
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.pt2e import quantize_int8
from ace_studio.engine.quantize.weight_only import pack_weights
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision


@dataclass
class RewrittenGraph:
    """A graph rewritten for a plan, and what the passes did to ops of the captured graph."""

    graph_module: fx.GraphModule
    folded: dict[str, str] = field(default_factory=dict)
    """Op id -> op that it was folded into."""
    refused: dict[str, str] = field(default_factory=dict)
    """Op id -> why it did not get its planned precision."""


def apply_plan(
    captured: CapturedModel,
    plan: BoundPlan,
    *,
    calibration: Callable[[], Sequence[Example]],
    reporter: Reporter,
    ranges: RangeChoice | None = None,
) -> RewrittenGraph:
    """Rewrite a copy of the captured graph so that every op runs at its planned precision, where torch can.

    Order matters: batch norms are folded in fp32 first, int8 grids are found on fp32 activations, casts come last.
    """
    rewritten = RewrittenGraph(flat_graph(captured.program))
    convolutions = {op_id for op_id, precision in plan.assigned.items() if precision is not Precision.FP32}
    if convolutions:
        reporter.phase(Phase.COMPRESS, "folding batch norms")
        rewritten.folded = fold_batch_norms(rewritten.graph_module, convolutions)
    table = captured.table
    tables = {
        table.op_id[row] for row in table.op_rows() if stores_table(table.op[row], plan.precision_of(table.op_id[row]))
    }
    static, dynamic = plan.ops_at(Precision.INT8_STATIC) - tables, plan.ops_at(Precision.INT8_DYNAMIC) - tables
    if static or dynamic:
        reporter.phase(Phase.CALIBRATE if static else Phase.COMPRESS, "int8 ops")
        examples = calibration() if static else [captured.example]  # weights' grids need a run too
        flat = [example.tensors() for example in examples]
        rewritten.graph_module, refused = quantize_int8(
            rewritten.graph_module,
            static=static,
            dynamic=dynamic,
            calibration=flat,
            reporter=reporter,
            schemes=plan.scheme_of,
            ranges=ranges,
        )
        rewritten.refused |= refused
        put_state_back(rewritten.graph_module, captured.program)
    if tables or plan.precisions & WEIGHT_ONLY:
        reporter.phase(Phase.COMPRESS, "packing weights")
        rewritten.refused |= pack_weights(
            rewritten.graph_module, plan.assigned, group_size=lambda op_id: plan.scheme_of(op_id).group_size
        )
    if plan.precisions & set(HALF_DTYPES):
        reporter.phase(Phase.COMPRESS, "16-bit ops")
        rewritten.refused |= insert_casts(rewritten.graph_module, plan.assigned)
    return rewritten
