"""Opens ``.tflite`` files with LiteRT's interpreter, which hands all ops that it can to XNNPACK."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.litert.model_file import delegated_ops, limits_in
from ace_studio.engine.targets.shared.flat_call import as_numpy
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.records.errors import AceError, ErrorCode

_ERRORS = (RuntimeError, ValueError)


class LiteRtModel:
    """A model in an interpreter, called with flat tensors."""

    def __init__(self, content: bytes, *, threads: int, name: str, keeps_values: bool = False) -> None:
        """Open it.

        Args:
            content: Of the file.
            threads: How many the runtime may use.
            name: Of the file, for errors.
            keeps_values: Run op by op without XNNPACK, so that every value can be read afterwards.

        Raises: AceError(BAD_FILE) if it is no model of LiteRT.
        """
        from ai_edge_litert import interpreter

        resolver = interpreter.OpResolverType
        kind = resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES if keeps_values else resolver.BUILTIN
        try:
            with hushed():
                self._interpreter: Any = interpreter.Interpreter(
                    model_content=content,
                    num_threads=threads,
                    experimental_op_resolver_type=kind,
                    experimental_preserve_all_tensors=keeps_values,
                )
                self._interpreter.allocate_tensors()
        except _ERRORS as error:
            raise library_error(ErrorCode.BAD_FILE, f"LiteRT cannot open {name}", error, where=name) from error
        self._limits = limits_in(content)
        self._inputs = [one["index"] for one in self._interpreter.get_input_details()]
        self._outputs = [one["index"] for one in self._interpreter.get_output_details()]
        self._shapes = [tuple(one["shape"]) for one in self._interpreter.get_input_details()]

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run it. Raises: AceError(BAD_INPUT) for a size that it was not proven at or cannot have."""
        self._check(tensors)
        try:
            self.give([as_numpy(tensor) for tensor in tensors])
            self._interpreter.invoke()
        except _ERRORS as error:
            raise library_error(
                ErrorCode.BAD_INPUT,
                "LiteRT cannot run the model on these inputs",
                error,
                remedy="Give inputs of the types and sizes that were traced, or let sizes that differ be dynamic.",
            ) from error
        # The interpreter copies what it gives; a value without dimensions comes as a number of NumPy.
        return [torch.as_tensor(self._interpreter.get_tensor(index)) for index in self._outputs]

    def give(self, arrays: Sequence[Any]) -> None:
        """Set the inputs; memory is planned again if a size differs from that of the last call."""
        shapes = [array.shape for array in arrays]
        if shapes != self._shapes:
            self._shapes = []  # if it fails, the next call plans again
            for index, shape in zip(self._inputs, shapes, strict=True):
                self._interpreter.resize_tensor_input(index, shape, strict=True)
            self._interpreter.allocate_tensors()
            self._shapes = shapes
        for index, array in zip(self._inputs, arrays, strict=True):
            self._interpreter.set_tensor(index, array)

    def bare(self, tensors: Sequence[Tensor]) -> Callable[[], object]:
        """A function that sets inputs of these values, runs, and takes the outputs."""
        arrays = [as_numpy(tensor) for tensor in tensors]

        def call() -> object:
            self.give(arrays)
            self._interpreter.invoke()
            return [self._interpreter.get_tensor(index) for index in self._outputs]

        return call

    def delegated(self) -> frozenset[int]:
        """Indices of the file's ops that XNNPACK runs."""
        return delegated_ops(self._interpreter._get_ops_details())

    def values(self, names: Collection[str]) -> Iterator[tuple[str, Tensor]]:
        """The values of the last call by name, if the model was opened to keep them."""
        for detail in self._interpreter.get_tensor_details():
            if detail["name"] in names:
                yield detail["name"], torch.as_tensor(self._interpreter.get_tensor(detail["index"]))

    def _check(self, tensors: Sequence[Tensor]) -> None:
        for limit in self._limits:
            if not limit.allows(size := tensors[limit.leaf].shape[limit.dim]):
                raise AceError.of(
                    ErrorCode.BAD_INPUT,
                    f"The model was not proven for this size: {limit.words}, and it is {size}",
                    why="the code that it was captured from does something else there",
                    remedy="Call the original for it, or capture the model again with such a size.",
                )


Reads = Callable[[Sequence[Tensor], Collection[str]], Iterator[tuple[str, Tensor]]]


def opened_for_reading(content: bytes, *, threads: int) -> Reads:
    """A function of flat inputs and of names of values, that runs a model and gives these values."""
    model = LiteRtModel(content, threads=threads, name="the float model", keeps_values=True)

    def read(tensors: Sequence[Tensor], names: Collection[str]) -> Iterator[tuple[str, Tensor]]:
        model(*tensors)
        return model.values(names)

    return read
