"""Runs of a captured graph that watch some ops: their ranges, their errors, and what reaches the outputs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.sensitivity.local_error import NodeRanges, WatchedOp, rounded_call, rounded_result
from ace_studio.records.recipes.plan import Precision, Scheme

WatchedOps = Mapping[str, WatchedOp]
"""Op id -> what a precision rounds there."""
_Precisions = TypeVar("_Precisions")


class WatchingRun(fx.Interpreter):
    """Runs the graph; `at_op` gives the result of every watched op. Counts how often ops are run."""

    def __init__(self, graph_module: fx.GraphModule, watched: WatchedOps) -> None:
        super().__init__(graph_module)
        self.watched = watched
        self.runs: Counter[str] = Counter()

    def fetch_attr(self, target: str) -> Any:
        """Weights without gradients, which are not needed."""
        value = super().fetch_attr(target)
        return value.detach() if isinstance(value, Tensor) else value

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        op_id = n.meta.get(OP_ID, "")
        if op_id not in self.watched:
            return super().run_node(n)
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            self.runs[op_id] += 1
            return self.at_op(n, op_id, args, kwargs)

    def at_op(self, node: fx.Node, op_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a watched op; here the exact one."""
        del op_id
        return node.target(*args, **kwargs)  # type: ignore[operator]


class _RoundingRun(WatchingRun, Generic[_Precisions]):
    """A run that rounds watched ops."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        watched: WatchedOps,
        *,
        precisions: _Precisions,
        ranges: NodeRanges,
        scheme: Scheme,
    ) -> None:
        super().__init__(graph_module, watched)
        self._precisions = precisions
        self._grids: dict[str, Any] = {"ranges": ranges, "scheme": scheme}


class RoundedRun(_RoundingRun[Mapping[str, Precision]]):
    """Runs some ops at low precisions and all others exactly."""

    def at_op(self, node: fx.Node, op_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The op at its low precision, if it has one."""
        if op_id not in self._precisions:
            return super().at_op(node, op_id, args, kwargs)
        target: Any = node.target
        precision = self._precisions[op_id]
        return rounded_call(target, args, kwargs, op=self.watched[op_id], precision=precision, **self._grids)


class ProbingRun(_RoundingRun[Sequence[Precision]]):
    """Keeps the error of each precision at each watched op; probes measure how much of it reaches the outputs.

    With v a random vector of signs, J the derivative of the outputs by an op's result and e the error of that result,
    E[(v' J e)^2] = |J e|^2: one backward pass gives one sample of the output noise of every op at once.
    Source: Hutchinson 1990, doi:10.1080/03610919008812866 (the estimator of a trace by random signs).
    """

    def __init__(self, graph_module: fx.GraphModule, watched: WatchedOps, **rounding: Any) -> None:
        super().__init__(graph_module, watched, **rounding)
        self._errors: dict[tuple[str, int], dict[Precision, Tensor]] = {}
        self._gradient_operands: dict[str, int] = {}
        self._leaves: list[Tensor] = []
        self._products: dict[tuple[str, Precision], Tensor] = {}
        self._batch = _batch_symbol(graph_module)
        self.unclear: set[str] = set()
        """Ops at which some gradient is not finite."""
        self.reached: set[str] = set()
        """Ops that got a gradient."""

    def at_op(self, node: fx.Node, op_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the op exactly for the ops behind it, and once per precision for its error."""
        exact = super().at_op(node, op_id, args, kwargs)
        plain = pytree.tree_map_only(Tensor, Tensor.detach, (tuple(args), dict(kwargs)))
        with torch.no_grad():
            wrong = {
                precision: self._errors_at((node, op_id), plain, exact, precision)
                for precision in self.watched[op_id].precisions(self._precisions)
            }
        leaves, spec = pytree.tree_flatten(exact)
        axes = [self._batch_axis(one) for one in pytree.tree_leaves(node.meta["val"])]
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                self._errors[op_id, index] = {precision: errors[index] for precision, errors in wrong.items()}
                leaves[index] = self._tapped(leaf, op_id, index, axes[index])
        self._gradient_operands[op_id] = sum(
            isinstance(one, Tensor) and one.requires_grad for one in pytree.tree_leaves((tuple(args), dict(kwargs)))
        )
        return pytree.tree_unflatten(leaves, spec)

    def _errors_at(self, at: tuple[fx.Node, str], call: tuple[Any, Any], exact: Any, precision: Precision) -> list[Any]:
        node, op_id = at
        args, kwargs = call
        op = self.watched[op_id]
        options = {"op": op, "precision": precision, **self._grids}
        if op.operands:
            self.runs[op_id] += 1
            rounded = rounded_call(node.target, args, kwargs, **options)  # type: ignore[arg-type]
        else:  # it may write into what it reads, so it is not run again
            rounded = rounded_result(pytree.tree_map_only(Tensor, Tensor.detach, exact), **options)
        pairs = zip(pytree.tree_leaves(rounded), pytree.tree_leaves(exact), strict=True)
        return [one - other.detach() if isinstance(one, Tensor) else None for one, other in pairs]

    def _batch_axis(self, value: object) -> int | None:
        """The axis along which the batch lies, if one dimension of the value is exactly the batch."""
        if not self._batch or not isinstance(value, Tensor):
            return None
        axes = [axis for axis, size in enumerate(value.shape) if str(size) == self._batch]
        return axes[0] if len(axes) == 1 else None

    def _tapped(self, result: Tensor, op_id: str, index: int, axis: int | None) -> Tensor:
        """The result with a gradient hook, which sees this value whatever is written into it later."""
        if not result.requires_grad:
            leaf = result.detach().requires_grad_()
            self._leaves.append(leaf)
            result = leaf.clone()  # what is no leaf and no view may be written into
        result.register_hook(  # type: ignore[no-untyped-call]
            lambda gradient: self._add_gradient(op_id, index, axis, gradient)
        )
        return result

    def _add_gradient(self, op_id: str, index: int, axis: int | None, gradient: Tensor) -> Tensor:
        self.reached.add(op_id)
        if not bool(gradient.isfinite().all()):
            self.unclear.add(op_id)
            gradient = gradient.nan_to_num(0.0, 0.0, 0.0)  # the ops before it may still get one
        for precision, error in self._errors[op_id, index].items():
            product = (gradient * error).double()
            per_element = product.sum() if axis is None else product.movedim(axis, 0).flatten(1).sum(1)
            known = self._products.get((op_id, precision))
            self._products[op_id, precision] = per_element if known is None else known + per_element
        return gradient

    def probe(self, outputs: Sequence[Tensor], weights: Sequence[float], generator: torch.Generator) -> None:
        """Backpropagate one vector of random signs; `take` then has one sample per op and precision.

        Args:
            outputs: What the run gave.
            weights: One factor per output; 0 leaves it out.
            generator: Draws the signs.
        """
        self._products = {}
        chosen = [
            (output, weight)
            for output, weight in zip(outputs, weights, strict=True)
            if weight and output.requires_grad and output.is_floating_point()
        ]
        if not chosen:
            return
        vectors = [_signs(output, generator) * weight for output, weight in chosen]
        torch.autograd.grad(
            [output for output, _ in chosen], self._leaves, vectors, retain_graph=True, allow_unused=True
        )
        for op_id in self.reached:
            self.runs[op_id] += self._gradient_operands[op_id]

    def take(self) -> dict[tuple[str, Precision], float]:
        """(Op id, precision) -> one sample of the noise power that it alone adds, in units of 1 / weight^2."""
        return {at: float(product.square().sum()) for at, product in self._products.items()}


def _batch_symbol(graph_module: fx.GraphModule) -> str:
    """The size of the first input's first dimension, if that is free.

    Elements of a batch are independent, so each gives a sample of its own: a batch of 16 is worth 16 probes.
    """
    for node in graph_module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, Tensor) and value.dim():
            return "" if isinstance(value.shape[0], int) else str(value.shape[0])
    return ""


def _signs(like: Tensor, generator: torch.Generator) -> Tensor:
    coins = torch.randint(0, 2, like.shape, generator=generator).to(like.device)
    signs = coins.to(like.dtype) * 2 - 1
    return torch.where(like.detach().isfinite(), signs, torch.zeros_like(signs))
