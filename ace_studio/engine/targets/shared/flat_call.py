"""Converts between the arguments of forward and the flat list of tensors that a runtime takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import ConstantArgument, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from ace_studio.engine.examples.forms import in_form_of
from ace_studio.engine.examples.leaves import forward_parameters, is_same_value, named_leaves
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.tensors import memory_limits, size_limits


class FlatCall:
    """Flattens the arguments of a call and nests the results, as in the captured example."""

    def __init__(self, captured: CapturedModel) -> None:
        self._example = captured.example
        self._module = captured.module
        self._limits = size_limits(captured.inputs)
        self._layouts = memory_limits(captured.inputs)
        leaves, self._in_spec = pytree.tree_flatten((captured.example.args, dict(captured.example.kwargs)))
        self._fixed = [Tensor if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        values = (*captured.example.args, *captured.example.kwargs.values())
        self._is_plain = all(isinstance(one, Tensor) for one in values)
        specs = [
            spec.arg for spec in captured.program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT
        ]
        leaves_of_result, out_spec = _result_leaves(specs), captured.program.call_spec.out_spec
        self._nest = _nesting(out_spec, leaves_of_result) if out_spec is not None else None
        self._leaves = list(leaves_of_result) if out_spec is None else []

    def around(self, run: Callable[..., Sequence[Tensor]]) -> Callable[..., Any]:
        """A function of forward's arguments around a function of flat tensors.

        Calls that give tensors, by position and by name as the example does, skip flattening: it takes as long as a
        small model.

        The function raises AceError(BAD_INPUT) for a size or a memory layout for which the graph does not hold.
        """
        run = self._limited(run) if self._limits or self._layouts else run

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.unflatten(run(*self.flatten(args, kwargs)))

        if not self._is_plain:
            return call
        count, names, unflatten = len(self._example.args), list(self._example.kwargs), self.unflatten

        def call_plainly(*args: Any, **kwargs: Any) -> Any:
            if len(args) != count or len(kwargs) != len(names):
                return call(*args, **kwargs)
            for name in names:
                if kwargs.get(name).__class__ is not Tensor:
                    return call(*args, **kwargs)
            return unflatten(run(*args, *[kwargs[name] for name in names]))

        return call_plainly

    def _limited(self, run: Callable[..., Sequence[Tensor]]) -> Callable[..., Sequence[Tensor]]:
        def call(*tensors: Tensor) -> Sequence[Tensor]:
            for limit in self._limits:
                if not limit.allows(size := tensors[limit.leaf].shape[limit.dim]):
                    raise _not_proven("size", f"{limit.words}, and it is {size}")
            for layout in self._layouts:
                if not (given := tensors[layout.leaf]).permute(layout.order).is_contiguous():
                    raise _not_proven("memory layout", f"{layout.words}, and its strides are {given.stride()}")
            return run(*tensors)

        return call

    def flatten(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """The tensors of a call, in the order of `Example.tensors`.

        Raises: AceError(BAD_INPUT) if the call is not nested like the example that was traced, or gives another value
            for what is no tensor: the graph holds the one that was traced.
        """
        if self._is_plain and not kwargs and len(args) == len(self._example.args) and not self._example.kwargs:
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
        return [leaf(flat) for leaf in self._leaves] if self._nest is None else self._nest(flat)


def _not_proven(kind: str, demand: str) -> AceError:
    return AceError.of(
        ErrorCode.BAD_INPUT,
        f"The graph does not hold for this {kind}: {demand}",
        why="the model's code does something else there, which the graph does not record",
        remedy=f"Call the original for it, or capture the model again with such a {kind}.",
    )


_Reads = Callable[[Sequence[Tensor]], Any]
"""Makes a part of the result from the flat outputs."""


def _result_leaves(arguments: Sequence[object]) -> Iterator[_Reads]:
    """What reads every leaf of the result: a tensor, a number that was computed, or a constant."""
    place = 0
    for argument in arguments:
        if isinstance(argument, ConstantArgument):
            yield partial(_constant, argument.value)
            continue
        yield itemgetter(place) if isinstance(argument, TensorArgument) else partial(_number, place)
        place += 1


def _constant(value: Any, _: Sequence[Tensor]) -> Any:
    return value


def _number(place: int, flat: Sequence[Any]) -> Any:
    return flat[place].item() if isinstance(flat[place], Tensor) else flat[place]


def _nesting(spec: pytree.TreeSpec, leaves: Iterator[_Reads]) -> _Reads:
    """What makes the nested result. pytree's own way takes as long as a small model."""
    if spec.is_leaf():
        return next(leaves)
    parts, context = [_nesting(spec.child(at), leaves) for at in range(spec.num_children)], spec.context
    make = pytree.SUPPORTED_NODES[spec.type].unflatten_fn
    return lambda flat: make([part(flat) for part in parts], context)


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
            remedy="Give float32 tensors; a model that needs this type converts them inside, or use a torch target.",
        ) from error


def as_tensor(array: Any) -> Tensor:
    """A tensor over the array's memory; copied if numpy does not own it or may not write it."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
