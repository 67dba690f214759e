"""What every method of improvement works with: its job, and changes of the weights of the captured graph.

Changes are kept apart from the graph, so that each can be undone. A change is exact if the float model stays what it is
(two scales that cancel). Other changes belong to one op, and only a plan that puts this op below full precision gets
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.ops.roles import OpRole, op_role
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of, flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import READS, Correct, Int8Style, Simulator, float_graph
from ace_studio.engine.quantize.visit import visit_values
from ace_studio.records.recipes.plan import FLOATS, Precision

HIGH = frozenset(FLOATS)
"""Float precisions of 16 bits or more: improvements are for the others."""


@dataclass(frozen=True)
class ImproveJob:
    """The inputs of every method."""

    captured: CapturedModel
    """As it was captured; changes are kept apart."""
    plan: BoundPlan
    work: Sequence[Sequence[Tensor]]
    """Flat inputs of the calibration examples to work with."""
    ranges: RangeChoice
    reporter: Reporter
    style: Int8Style = READS
    """What the targets round around ops at int8-static."""
    max_seconds: float = 120.0
    """The most time for learning."""

    def simulator(self, changes: Sequence[WeightChange]) -> Simulator:
        """The simulated model with these changes, its ranges found on the examples to work with."""
        graph = float_graph(with_changed_weights(self.captured, changes, is_low=self.is_low))
        if Precision.INT8_STATIC not in self.plan.precisions:
            return Simulator(graph)
        grid = self.plan.plan.activations
        ranges = observe_ranges(graph.graph_module, self.work, choice=self.ranges, grid_of=lambda _: grid)
        return Simulator(graph, ranges=ranges, style=self.style)

    def lockstep(self, changes: Sequence[WeightChange], simulator: Simulator, correct: Correct) -> None:
        """`Simulator.lockstep` on the examples to work with, beside the float model as exact changes leave it."""
        exact = [change for change in changes if change.is_exact]
        reference = float_graph(with_changed_weights(self.captured, exact))
        simulator.lockstep(self.plan, self.work, correct, reference=reference)

    def visit_inputs(
        self, changes: Sequence[WeightChange], names: Collection[str], visit: Callable[[str, Tensor], None]
    ) -> None:
        """Run the examples to work with in float, with these changes; ``visit`` gets the values of the named nodes."""

        def see(node: fx.Node, value: Tensor) -> None:
            if node.name in names:
                visit(node.name, value)

        visit_values(
            flat_graph(with_changed_weights(self.captured, changes, is_low=self.is_low).program), self.work, see
        )

    def is_low(self, op_id: str) -> bool:
        """Whether the plan rounds this op to a grid of integers."""
        return self.plan.precision_of(op_id) not in HIGH

    def fidelity_db(self, changes: Sequence[WeightChange], references: Sequence[Sequence[Tensor]]) -> float:
        """Fidelity of the simulated plan on the examples to work with, against the unchanged float model."""
        return self.simulator(changes).fidelity_db(self.plan, self.work, references)

    def references(self, examples: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """Flat outputs of the unchanged float graph, per example."""
        simulator = Simulator(float_graph(self.captured))
        return [simulator.float_outputs(example) for example in examples]


_NORM = torch.ops.aten.batch_norm.default
_GROUPS_AT = {"aten.conv1d": 6, "aten.conv2d": 6, "aten.conv3d": 6, "aten.convolution": 8}
"""Place of the number of groups among a convolution's arguments."""


@dataclass(frozen=True)
class WeightChange:
    """The stored tensors that one method of improvement changed."""

    method: str
    is_exact: bool
    tensors: Mapping[str, Tensor]
    """Name of a stored tensor -> its new value, of the same shape and type."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Name of a stored tensor -> the op that the change is for; of changes that are not exact."""


@dataclass(frozen=True)
class NoChange:
    """A method of improvement found nothing to change."""

    reason: str


@dataclass(frozen=True)
class Site:
    """An op with a stored weight of its own, seen with the batch norm behind it, if there is one."""

    node: fx.Node
    role: OpRole
    weight: str
    """Name of the stored weight."""
    bias: str
    """Name of the stored bias; empty if there is none."""
    norm: fx.Node | None = None

    @property
    def op_id(self) -> str:
        """Row of the graph table."""
        return str(self.node.meta[OP_ID])

    @property
    def result(self) -> fx.Node:
        """The node whose value is the op's, the norm included."""
        return self.norm or self.node

    @property
    def groups(self) -> int:
        """Groups of a convolution; 1 for everything else."""
        place = _GROUPS_AT.get(str(self.node.target).rpartition(".")[0])
        return int(self.node.args[place]) if place is not None and len(self.node.args) > place else 1  # type: ignore[arg-type]


class WeightEditor:
    """A captured graph whose stored tensors can be changed; the capture itself stays as it is."""

    def __init__(self, captured: CapturedModel, changes: Sequence[WeightChange] = ()) -> None:
        self._captured = captured
        self.graph_module = flat_graph(captured.program)
        """The graph as captured, batch norms and all. Its own tensors are not changed: ask `tensor`."""
        self._overlay: dict[str, Tensor] = {}
        for change in changes:
            self._overlay |= change.tensors
        self._changed: dict[str, Tensor] = {}
        self._owners: dict[str, str] = {}
        self._readers: dict[str, int] = {}
        for node in self.graph_module.graph.find_nodes(op="get_attr"):
            key = self._key(str(node.target))
            self._readers[key] = self._readers.get(key, 0) + len(node.users)
        self.sites = [site for node in self.graph_module.graph.nodes if (site := self._site(node)) is not None]
        """Every op that can be changed, in graph order."""

    def tensor(self, name: str) -> Tensor:
        """The present value of a stored tensor, float32."""
        found = self._changed.get(name, self._overlay.get(name))
        if found is None:
            owner, _, leaf = name.rpartition(".")
            found = getattr(self.graph_module.get_submodule(owner), leaf)
        return found.detach()

    def rows(self, site: Site) -> Tensor:
        """The weight of a linear layer, [outputs, inputs]."""
        weight = self.tensor(site.weight)
        return weight if site.role.channel_axis == 0 else weight.t()

    def set(self, name: str, value: Tensor, *, owner: str = "") -> None:
        """Give a stored tensor a new value of the same shape. Raises: ValueError if it is not finite or misshapen."""
        before = self.tensor(name)
        if before.shape != value.shape or not bool(value.isfinite().all()):
            raise ValueError(f"the new value of {name} does not fit")
        self._changed[name] = value.to(before.dtype)
        if owner:
            self._owners[name] = owner

    def stored(self, argument: object) -> str:
        """Name of the tensor that only this argument reads; empty if it is computed, shared, or no float tensor."""
        if not isinstance(argument, fx.Node) or argument.op != "get_attr":
            return ""
        value = constant_of(self.graph_module, argument)
        is_own = self._readers.get(self._key(str(argument.target)), 0) == 1
        return str(argument.target) if is_own and value is not None and value.dtype is torch.float32 else ""

    def scale_inputs(self, site: Site, factor: Tensor) -> None:
        """Multiply the weight along its inputs: factor [inputs of the op]."""
        weight = self.tensor(site.weight)
        if site.role.channel_axis != 0:  # [inputs, outputs]
            self.set(site.weight, weight * factor[:, None])
            return
        rows = weight.reshape(site.groups, -1, *weight.shape[1:])
        shape = [site.groups, 1, -1, *[1] * (weight.dim() - 2)]
        self.set(site.weight, (rows * factor.reshape(shape)).reshape(weight.shape))

    def can_scale_outputs(self, site: Site) -> bool:
        """Whether there is a stored tensor for every part of the result."""
        if site.norm is not None:
            return all(self.stored(argument) for argument in site.norm.args[1:3])
        return bool(site.bias) or _argument(site.node, site.role.weight + 1) is None

    def scale_outputs(self, site: Site, factor: Tensor, *, owner: str = "") -> None:
        """Multiply the result per channel: factor [outputs of the op]."""
        if site.norm is not None:
            for argument in site.norm.args[1:3]:
                name = self.stored(argument)
                self.set(name, self.tensor(name) * factor, owner=owner)
            return
        weight = self.tensor(site.weight)
        shape = [1] * weight.dim()
        shape[site.role.channel_axis] = -1
        self.set(site.weight, weight * factor.reshape(shape), owner=owner)
        if site.bias:
            self.set(site.bias, self.tensor(site.bias) * factor, owner=owner)

    def shift_name(self, site: Site) -> str:
        """Name of the stored tensor that is added to the result per channel; empty if there is none."""
        return self.stored(site.norm.args[2]) if site.norm is not None else site.bias

    def change(self, method: str, *, is_exact: bool) -> WeightChange:
        """What was changed so far."""
        return WeightChange(method, is_exact, dict(self._changed), dict(self._owners))

    def _key(self, target: str) -> str:
        """Parameters that share memory are one."""
        owner, _, leaf = target.rpartition(".")
        value = getattr(self.graph_module.get_submodule(owner), leaf)
        return f"{value.data_ptr()}/{tuple(value.shape)}" if isinstance(value, Tensor) else target

    def _site(self, node: fx.Node) -> Site | None:
        role = op_role(str(node.target)) if node.op == "call_function" and OP_ID in node.meta else None
        if role is None or role.channel_axis not in (0, -1) or str(node.target).startswith("aten.addmm"):
            return None
        weight = self.stored(_argument(node, role.weight))
        if not weight or (str(node.target) == "aten.convolution.default" and node.args[6]):
            return None
        users = list(node.users)
        norm = users[0] if len(users) == 1 and users[0].target is _NORM and not users[0].args[5] else None
        return Site(node, role, weight, self.stored(_argument(node, role.weight + 1)), norm)


def _argument(node: fx.Node, place: int) -> object:
    return node.args[place] if len(node.args) > place else None


def changed_ops(captured: CapturedModel, changes: Sequence[WeightChange]) -> int:
    """How many ops read a changed tensor."""
    names = {name for change in changes for name in change.tensors}
    nodes = flat_graph(captured.program).graph.find_nodes(op="get_attr")
    return len({user for node in nodes if str(node.target) in names for user in node.users})


def with_changed_weights(
    captured: CapturedModel, changes: Sequence[WeightChange], *, is_low: Callable[[str], bool] = lambda _: True
) -> CapturedModel:
    """The capture with changed weights; ``module``, the original that results are compared with, stays.

    Args:
        captured: A capture of the whole graph.
        changes: The oldest first.
        is_low: Op id -> whether the plan puts it below full precision; changes for other ops are left out.
    """
    changed = {
        name: value
        for change in changes
        for name, value in change.tensors.items()
        if change.is_exact or is_low(change.owners.get(name, ""))
    }
    if not changed:
        return captured
    program = captured.program
    state = {name: changed.get(name, value) for name, value in program.state_dict.items()}
    constants = {name: changed.get(name, value) for name, value in program.constants.items()}
    unknown = set(changed) - set(state) - set(constants)
    if unknown:
        raise KeyError(f"the program stores no {sorted(unknown)[0]}")
    for name, value in state.items():
        if isinstance(program.state_dict[name], torch.nn.Parameter) and not isinstance(value, torch.nn.Parameter):
            state[name] = torch.nn.Parameter(value, requires_grad=program.state_dict[name].requires_grad)
    rewritten = torch.export.ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=program.graph_signature,
        state_dict=state,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=constants,
        verifiers=program.verifiers,
    )
    return dataclasses.replace(captured, program=rewritten)
