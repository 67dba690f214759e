"""What differs between two sizes stays open, or is refused with the reason."""

from types import SimpleNamespace

import numpy as np
import pytest

from ace_studio.engine.targets.litert.open_sizes import OpenSizesError, with_open_sizes

NAMES = {3: "CONV_2D", 22: "RESHAPE", 65: "SLICE", 130: "BROADCAST_TO"}


def model_of(kind: int, shape: list[int], stored: list[int], **options: int) -> SimpleNamespace:
    """One op that reads a value of this shape and a stored list of integers."""
    tensors = [
        SimpleNamespace(shape=shape, shapeSignature=None, buffer=0),
        SimpleNamespace(shape=[len(stored)], buffer=1),
    ]
    op = SimpleNamespace(opcodeIndex=0, inputs=[0, 1], builtinOptions=SimpleNamespace(**options), builtinOptionsType=1)
    return SimpleNamespace(
        operatorCodes=[SimpleNamespace(builtinCode=kind, deprecatedBuiltinCode=0)],
        buffers=[SimpleNamespace(data=None), SimpleNamespace(data=np.array(stored, np.int32).view(np.uint8))],
        subgraphs=[SimpleNamespace(tensors=tensors, operators=[op])],
    )


def test_the_size_that_differs_is_open_in_the_shape_and_in_the_reshape():
    model = model_of(22, [2, 3, 4], [2, 12])
    with_open_sizes(model, model_of(22, [5, 3, 4], [5, 12]), NAMES)
    assert model.subgraphs[0].tensors[0].shapeSignature == [-1, 3, 4]
    assert list(model.buffers[1].data.view(np.int32)) == [-1, 12]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (model_of(22, [5, 7, 4], [5, 7, 2, 2]), "two dynamic sizes apart"),
        (model_of(3, [5, 3, 4], [2, 3, 2, 2]), "other ops"),
        (model_of(22, [5, 12], [2, 3, 2, 2]), "another number of dimensions"),
    ],
)
def test_what_cannot_stay_open_is_refused_with_the_reason(other, why):
    with pytest.raises(OpenSizesError, match=why):
        with_open_sizes(model_of(22, [2, 3, 4], [2, 3, 2, 2]), other, NAMES)


def slice_of(size: int, begin: int, taken: int) -> SimpleNamespace:
    """Two slices of a value [size, 4] that store their sizes in one buffer."""
    model = model_of(65, [size, 4], [begin, 0])
    model.buffers.append(SimpleNamespace(data=np.array([taken, 4], np.int32).view(np.uint8)))
    (graph,) = model.subgraphs
    graph.tensors.append(SimpleNamespace(shape=[2], buffer=2))
    graph.operators[0].inputs.append(2)
    graph.operators.append(graph.operators[0])
    return model


def test_a_slice_takes_all_of_a_dynamic_size_or_is_refused():
    model = slice_of(2, 0, 2)
    with_open_sizes(model, slice_of(5, 0, 5), NAMES)
    assert list(model.buffers[2].data.view(np.int32)) == [-1, 4]
    with pytest.raises(OpenSizesError, match="takes a part of a dynamic size"):
        with_open_sizes(slice_of(2, 0, 1), slice_of(5, 0, 4), NAMES)


def test_another_op_that_stores_a_size_is_named():
    with pytest.raises(OpenSizesError, match="a BROADCAST_TO of the file stores a size"):
        with_open_sizes(model_of(130, [2, 3], [2, 3]), model_of(130, [5, 3], [5, 3]), NAMES)
    with pytest.raises(OpenSizesError, match="a CONV_2D of the file stores a size"):
        with_open_sizes(model_of(3, [2, 3], [1], stride=2), model_of(3, [5, 3], [1], stride=5), NAMES)
