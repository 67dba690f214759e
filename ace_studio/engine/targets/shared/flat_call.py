"""Converts between the arguments of forward and the flat list of tensors that a runtime takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import ConstantArgument, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from ace_studio.engine.examples.forms import in_form_of
from ace_studio.engine.examples.leaves import forward_parameters, is_same_value, named_leaves
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.records.errors import AceError, ErrorCode


class FlatCall:
    """Flattens the arguments of a call and nests the results, as in the captured example."""

    def __init__(self, captured: CapturedModel) -> None:
        self._example = captured.example
        self._module = captured.module
        leaves, self._in_spec = pytree.tree_flatten((captured.example.args, dict(captured.example.kwargs)))
        self._fixed = [Tensor if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._is_plain = not captured.example.kwargs and all(isinstance(one, Tensor) for one in captured.example.args)
        self._out_spec = captured.program.call_spec.out_spec
        self._leaves = [
            spec.arg for spec in captured.program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT
        ]
        self._is_single = self._out_spec is not None and self._out_spec.is_leaf() and len(self._leaves) == 1
        self._is_tuple = _is_flat_tuple(self._out_spec) and all(isinstance(one, TensorArgument) for one in self._leaves)

    def around(self, run: Callable[..., Sequence[Tensor]]) -> Callable[..., Any]:
        """A function of forward's arguments around a function of flat tensors.

        Models that take tensors and give one tensor skip flattening and nesting.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.unflatten(run(*self.flatten(args, kwargs)))

        if not (self._is_plain and self._is_single):
            return call
        count = len(self._example.args)

        def call_plainly(*args: Any, **kwargs: Any) -> Any:
            return run(*args)[0] if not kwargs and len(args) == count else call(*args, **kwargs)

        return call_plainly

    def flatten(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """The tensors of a call, in the order of `Example.tensors`.

        Raises: AceError(BAD_INPUT) if the call is not nested like the example that was traced, or gives another value
            for what is no tensor: the graph holds the one that was traced.
        """
        if self._is_plain and not kwargs and len(args) == len(self._example.args):
            return list(args)
        leaves, spec = pytree.tree_flatten(
            (args, {name: kwargs[name] for name in self._example.kwargs if name in kwargs})
        )
        if spec != self._in_spec or len(kwargs) != len(self._example.kwargs):
            leaves = self._bind(args, kwargs)
        self._check_fixed(leaves)
        return [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def _check_fixed(self, leaves: Sequence[Any]) -> None:
        for leaf, fixed in zip(leaves, self._fixed, strict=True):
            if isinstance(leaf, Tensor):
                if fixed is not Tensor:
                    raise self._bad_call(f"it gives a tensor where {fixed!r:.60} was traced")
            elif leaf is not fixed and not is_same_value(leaf, fixed):
                raise self._bad_call(
                    f"it gives {leaf!r:.60} where {fixed!r:.60} was traced, which the graph holds fixed"
                )

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of a call that passes by keyword what the example passes by position, or the reverse."""
        call = in_form_of(Example(args, dict(kwargs)), self._example, self._module)
        leaves, spec = pytree.tree_flatten((call.args, dict(call.kwargs)))
        if spec == self._in_spec:
            return leaves
        parameters = forward_parameters(self._module)
        given, traced = ([leaf.name for leaf in named_leaves(one, parameters)] for one in (call, self._example))
        if set(given) == set(traced):
            raise self._bad_call("its arguments are nested in another way")
        raise self._bad_call(f"it gives {', '.join(given) or 'nothing'}; traced were {', '.join(traced)}")

    def _bad_call(self, why: str) -> AceError:
        return AceError.of(
            ErrorCode.BAD_INPUT,
            "This call does not look like the example that the graph was captured with",
            why=why,
            remedy="Call it with the same arguments, nested in the same way.",
        )

    def unflatten(self, flat: Sequence[Tensor]) -> Any:
        """The result of forward for these tensors, with the constants of the graph in their places."""
        if self._is_single:
            return flat[0]
        if self._is_tuple:
            return tuple(flat)  # rebuilding it by its nesting takes as long as a small layer
        waiting = iter(flat)
        leaves = [_output_leaf(argument, waiting) for argument in self._leaves]
        return leaves if self._out_spec is None else pytree.tree_unflatten(leaves, self._out_spec)


def _is_flat_tuple(spec: pytree.TreeSpec | None) -> bool:
    return spec is not None and spec.type is tuple and all(spec.child(at).is_leaf() for at in range(spec.num_children))


def _output_leaf(argument: object, waiting: Any) -> Any:
    if isinstance(argument, ConstantArgument):
        return argument.value
    value = next(waiting)
    is_number = not isinstance(argument, TensorArgument) and isinstance(value, Tensor)
    return value.item() if is_number else value


def tensor_places(captured: CapturedModel) -> list[int]:
    """Which of a runtime's flat outputs are tensors of the model's result; the others are sizes that it returns."""
    specs = [spec.arg for spec in captured.program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    computed = [argument for argument in specs if not isinstance(argument, ConstantArgument)]
    return [place for place, argument in enumerate(computed) if isinstance(argument, TensorArgument)]


def as_numpy(tensor: Tensor) -> Any:
    """A view of the tensor's memory as a C-contiguous numpy array; copied only if it has to be.

    Raises: AceError(UNSUPPORTED) for a type that numpy lacks (bfloat16, float8).
    """
    if tensor.is_contiguous():
        try:
            return tensor.numpy()  # half of what the four steps below take, which a small model feels
        except (RuntimeError, TypeError):
            pass  # it needs gradients, is on another device, or has a type that numpy lacks
    try:
        return tensor.detach().cpu().contiguous().numpy()
    except TypeError as error:
        word = str(tensor.dtype).removeprefix("torch.")
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"An input of type {word} cannot be handed to this runtime",
            why=f"it takes numpy arrays, and numpy has no {word}",
            remedy="Let the model take float32 and convert inside, or use a torch target.",
        ) from error


def as_tensor(array: Any) -> Tensor:
    """A tensor over the array's memory; copied if numpy does not own it or may not write it."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
