"""What is kept of the calls that a script makes."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.catch import CallRecorder


class Inner(nn.Module):
    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        x.mul_(scale)
        return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.inner(x.clone(), scale=2.0))


def heard(run, *, wanted: str = "", calls: int = 4, **options) -> CallRecorder:
    recorder = CallRecorder(wanted=wanted, calls=calls, **options)
    with recorder.listening():
        run()
    return recorder


def shapes(recorder: CallRecorder) -> list[tuple[int, ...]]:
    shelf = recorder.chosen()
    assert shelf is not None
    return [tuple(next(iter(one.tensors.values())).shape) for one in shelf.kept]


def test_the_outermost_module_with_the_most_parameters_is_chosen() -> None:
    net, loss = Net(), nn.MSELoss()
    recorder = heard(lambda: loss(net(torch.ones(3, 4)), torch.zeros(3, 2)))
    assert recorder.chosen().module is net
    assert shapes(recorder) == [(3, 4)]


@pytest.mark.parametrize("wanted", ["inner", "Inner", f"{Inner.__module__}.Inner"])
def test_a_submodule_is_chosen_by_its_path_or_its_class_and_keyword_arguments_are_kept(wanted: str) -> None:
    net = Net()
    recorder = heard(lambda: net(torch.ones(3, 4)), wanted=wanted)
    (kept,) = recorder.chosen().kept
    assert kept.call.kwargs["scale"].value == 2.0
    assert kept.tensors["call.0"].sum() == 12, "the tensor is as it was before forward wrote into it"


def test_every_form_is_kept_before_a_second_call_of_any() -> None:
    net = Net()

    def run() -> None:
        for size in [1] * 50 + [2, 3] + [1] * 50:
            net(torch.ones(size, 4))

    recorder = heard(run, calls=4)
    assert {1, 2, 3} == {shape[0] for shape in shapes(recorder)}
    assert len(shapes(recorder)) == 4
    assert recorder.chosen().seen == 102


def test_later_calls_of_a_known_form_have_a_chance() -> None:
    net = Net()
    recorder = heard(lambda: [net(torch.full((1, 4), float(i))) for i in range(200)], calls=8)
    values = [one.tensors["call.0"][0, 0].item() for one in recorder.chosen().kept]
    assert len(values) == 8
    assert max(values) >= 8, "a fair sample does not hold the first eight calls only"


def test_what_would_be_too_large_is_left_out_with_a_note() -> None:
    net = Net()
    recorder = heard(lambda: [net(torch.ones(size, 4)) for size in (1, 1000, 2)], max_bytes=1000)
    assert shapes(recorder) == [(1, 4), (2, 4)]
    assert any("left out" in note for note in recorder.notes)


def test_arguments_that_no_file_holds_are_named() -> None:
    class Picky(nn.Module):
        def forward(self, thing: object) -> Tensor:
            return torch.ones(1)

    module = Picky()
    recorder = heard(lambda: module(object()))
    assert recorder.chosen() is None
    assert any("class object" in note for note in recorder.notes)


def test_an_optional_argument_that_no_file_holds_is_left_out_of_the_call_and_named() -> None:
    class Cached(nn.Module):
        def forward(self, x: Tensor, cache: object = None) -> Tensor:
            return x

    module = Cached()
    recorder = heard(lambda: module(torch.ones(2), cache=object()))
    (kept,) = recorder.chosen().kept
    assert list(kept.call.kwargs) == []
    assert any("kept without" in note and "'cache'" in note for note in recorder.notes)


def test_all_modules_are_listed_to_choose_from_the_outermost_first() -> None:
    net = Net()
    listed = heard(lambda: [net(torch.ones(size, 4)) for size in (2, 3)]).modules()
    assert [(one.path, one.kind, one.calls) for one in listed] == [
        ("", "Net", 2),
        ("head", "Linear", 2),
        ("inner", "Inner", 2),
    ]
    assert listed[0].inputs == ("x float32 2x4", "x float32 3x4")


def test_a_compiled_module_is_heard_and_still_works() -> None:
    net = Net()
    compiled = torch.compile(net, backend="eager")
    results = []
    recorder = heard(lambda: results.append(compiled(torch.ones(3, 4))))
    assert torch.allclose(results[0], net(torch.ones(3, 4)))
    assert shapes(recorder) == [(3, 4)]


def test_calls_in_other_threads_are_heard_as_outermost() -> None:
    net = Net()

    def run() -> None:
        thread = threading.Thread(target=lambda: net(torch.ones(5, 4)))
        thread.start()
        thread.join()

    assert shapes(heard(run)) == [(5, 4)]


def test_afterwards_modules_are_called_as_before() -> None:
    before = nn.Module.__call__
    with pytest.raises(ZeroDivisionError):
        heard(lambda: 1 / 0)
    assert nn.Module.__call__ is before


def test_a_cancelled_job_ends_the_script_at_its_next_call() -> None:
    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    net = Net()
    with pytest.raises(StopError):
        heard(lambda: net(torch.ones(1, 4)), check=stop)
