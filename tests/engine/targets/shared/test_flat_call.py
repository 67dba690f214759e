"""A compiled model is called as the original is: by position, by name, with defaults, in any order."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.captured import captured_of


class Scaled(nn.Module):
    def forward(self, x: Tensor, shift: Tensor, scale: float = 1.0) -> Tensor:
        return (x - shift) * scale


def flat_call(examples: list[Example]) -> FlatCall:
    return FlatCall(captured_of(Scaled().eval(), *examples))


@pytest.fixture(scope="module")
def by_name() -> FlatCall:
    """Traced with keywords that are not in the order of the signature, and with the default written out."""
    return flat_call(
        [Example(kwargs={"shift": torch.zeros(n, 4), "x": torch.ones(n, 4), "scale": 1.0}) for n in (2, 3)]
    )


X, SHIFT = torch.ones(5, 4), torch.zeros(5, 4)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X, SHIFT), {}),
        ((X,), {"shift": SHIFT}),
        ((), {"x": X, "shift": SHIFT}),
        ((X, SHIFT, 1.0), {}),
    ],
)
def test_every_way_to_write_the_call_gives_each_input_its_own_tensor(by_name, args, kwargs) -> None:
    shift, x = by_name.flatten(args, kwargs)
    assert x is X
    assert shift is SHIFT


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((X, SHIFT, 2.0), {}, "2.0 where 1.0 was traced"),
        ((X,), {}, "traced were shift, x, scale"),
        ((X, SHIFT, torch.ones(1)), {}, "gives a tensor where 1.0"),
    ],
)
def test_a_call_that_the_graph_cannot_hold_is_refused_instead_of_answered_wrongly(by_name, args, kwargs, words) -> None:
    with pytest.raises(AceError, match=words) as caught:
        by_name.flatten(args, kwargs)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT


def test_a_default_that_was_not_traced_may_be_written_out() -> None:
    call = flat_call([Example((torch.ones(n, 4), torch.zeros(n, 4))) for n in (2, 3)])
    assert call.flatten((X,), {"shift": SHIFT, "scale": float("1.0")}) == [X, SHIFT]
    with pytest.raises(AceError, match="traced were x, shift"):
        call.flatten((X, SHIFT, 3.0), {})


class Nested(nn.Module):
    """Gives containers in containers, a size, and a constant."""

    def forward(self, x: Tensor, shift: Tensor) -> dict[str, object]:
        return {"sum": x + shift, "both": (x, [shift * 2, x.shape[0]]), "name": None}


@pytest.fixture(scope="module")
def nested() -> FlatCall:
    examples = [Example((torch.ones(n, 4),), {"shift": torch.zeros(n, 4)}) for n in (2, 3)]
    return FlatCall(captured_of(Nested().eval(), *examples))


def test_results_are_nested_as_forward_nests_them(nested) -> None:
    call = nested.around(lambda x, shift: [x + shift, x, shift * 2, torch.tensor(5)])
    result = call(X, shift=SHIFT)
    assert list(result) == ["sum", "both", "name"]
    assert type(result["both"]) is tuple and type(result["both"][1]) is list
    assert result["both"][0] is X
    assert result["both"][1][1] == 5 and type(result["both"][1][1]) is int
    assert result["name"] is None


@pytest.mark.parametrize(
    ("args", "kwargs"), [((X,), {"shift": SHIFT}), ((X, SHIFT), {}), ((), {"shift": SHIFT, "x": X})]
)
def test_a_function_of_flat_tensors_is_called_with_each_input_in_its_place(nested, args, kwargs) -> None:
    seen = []
    nested.around(lambda *tensors: seen.extend(tensors) or [X, X, X, 5])(*args, **kwargs)
    assert [one is other for one, other in zip(seen, (X, SHIFT), strict=True)] == [True, True]


def test_an_input_by_name_that_is_no_tensor_is_refused(nested) -> None:
    with pytest.raises(AceError) as caught:
        nested.around(lambda *_: [X, X, X, 5])(X, shift=None)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
