"""Running the user's module: its state is restored, and what it raises is explained."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.capture.captures import assert_helpful, capture_tiny, failure


def test_an_exception_in_forward_is_the_users_with_its_line_and_the_cure_of_a_typo() -> None:
    error = failure("raises")
    assert_helpful(error, code=ErrorCode.USER_CODE, line="x.size[0]")
    assert "x.shape[0]" in error.problem.remedy


def test_an_example_of_the_wrong_shape_is_named_by_number_and_shape() -> None:
    error = failure("wrong_shape")
    assert_helpful(error, code=ErrorCode.BAD_INPUT, line="")
    assert "example 2" in error.problem.what
    assert "2x15" in error.problem.what


class HooksItself(nn.Module):
    """Adds a hook at its first call and notes that it did, as modern model collections do to collect hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.is_hooked = False
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_hooked:
            self.inner.register_forward_hook(lambda _module, _args, result: self.seen.append(result))
            self.is_hooked = True
        self.seen.clear()
        self.inner(x)
        return torch.cat(self.seen, 1)


def test_a_hook_that_a_call_adds_goes_with_the_note_that_it_is_there() -> None:
    eager = EagerRun.of(HooksItself())
    shapes = [tuple(eager.output(Example((torch.randn(2, 4),))).shape) for _ in range(3)]
    assert shapes == [(2, 4)] * 3


def test_the_callers_random_numbers_are_not_disturbed() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    capture_tiny("mlp")
    assert torch.equal(torch.rand(1), expected)


class RemembersItsLast(nn.Module):
    """Keeps a tensor with a history, as the older weight norm does; x [n, 4]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.last = self.layer.weight * 2

    def forward(self, x):
        return nn.functional.linear(x, self.last)


def test_a_module_that_holds_a_tensor_with_a_history_is_run_and_put_back():
    module = RemembersItsLast()
    before = module.last.detach().clone()
    eager = EagerRun.of(module)
    eager.output(Example.of(torch.randn(3, 4)))
    torch.testing.assert_close(module.last, before, rtol=0, atol=0)


def test_a_recurrent_layer_keeps_its_own_weights():
    layer = nn.LSTM(4, 3)
    EagerRun.of(layer).output(Example.of(torch.randn(2, 1, 4)))
    assert all(
        one is getattr(layer, name) for one, name in zip(layer._flat_weights, layer._flat_weights_names, strict=True)
    )


def test_a_list_that_a_hook_holds_too_stays_one_list():
    module = nn.Sequential(nn.Linear(4, 4))
    module.seen = seen = []
    module[0].register_forward_hook(lambda _module, _args, result: seen.append(result.shape[0]))
    eager = EagerRun.of(module)
    eager.output(Example.of(torch.randn(2, 4)))
    assert module.seen is seen and seen == []


class Shares(nn.Module):
    """Two attributes that hold one tensor; x [n]."""

    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1)
        self.totals = [self.total]

    def forward(self, x):
        self.total += x.sum()
        return self.totals[0] + x


def test_a_tensor_that_two_attributes_hold_stays_one_tensor():
    module = Shares()
    eager = EagerRun.of(module)
    assert torch.equal(*(eager.output(Example.of(torch.ones(2))) for _ in range(2)))
    assert module.total is module.totals[0] and module.total == 0


class KeepsWhatItSaw(nn.Module):
    """Buffers that forward puts others in the place of; x [n, 8]."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 8))
        self.register_buffer("last", None)

    def forward(self, x):
        self.cache = torch.cat([self.cache, x])
        self.last = x if self.last is None else self.last + x
        return self.cache.sum(0) + self.last.sum(0)


def test_buffers_that_forward_replaces_are_put_back():
    module = KeepsWhatItSaw()
    before, eager = module.cache, EagerRun.of(module)
    first, again = (eager.output(Example.of(torch.ones(2, 8))) for _ in range(2))
    assert torch.equal(first, again)
    assert module.cache is before and module.last is None
    assert eager.changed_by(Example.of(torch.ones(2, 8)))[1] == ["cache", "last"]


def test_a_call_that_forward_refuses_has_no_output_and_the_state_is_restored():
    class Picky(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            if len(x) > 2:
                raise ValueError("too many")
            return x

    eager = EagerRun.of(Picky())
    assert eager.output_if_accepted(Example.of(torch.ones(3))) is None
    assert torch.equal(eager.output_if_accepted(Example.of(torch.ones(2))), torch.ones(2))
    assert eager.module.calls == 0


def test_integers_beyond_a_vocabulary_say_how_far_they_may_go() -> None:
    eager = EagerRun.of(nn.Embedding(50, 4))
    with pytest.raises(AceError) as caught:
        run_example(eager, Example(args=(torch.tensor([99]),)), label="example 1")
    assert "random 0..49" in caught.value.problem.remedy
