"""What flows from stage to stage: an example call, a loaded model, a captured program, a plan bound to it."""

from ace_studio.engine.flow.bound_plan import BoundOp, BoundPlan
from ace_studio.engine.flow.captured import AnyCapture, Captured, CapturedFile, CapturedModel, PartialModel, Subgraph
from ace_studio.engine.flow.example import (
    Example,
    measured_places,
    pooled_outputs,
    repeats_without_end,
    tensor_leaves,
)
from ace_studio.engine.flow.loaded import DataSources, GivenModel, LoadedModel, put_in_eval_mode
