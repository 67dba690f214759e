"""Examples made from batch norms look like what the norms saw in training, and only where that can be had."""

import itertools
import time

import pytest
import torch
from torch import nn

from ace_studio.engine.examples import from_norms
from ace_studio.engine.examples.from_norms import examples_from_norms
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Cancelled, Reporter


def trained_on(real: torch.Tensor) -> nn.Module:
    """Two norms that have seen these pictures [n, 1, 8, 8], and random weights."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8, momentum=None), nn.ReLU(), nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8, momentum=None), nn.Flatten(), nn.Linear(128, 4),
    )  # fmt: skip
    with torch.no_grad():
        model(real)
    return model.eval()


def random_rows(*sizes: int) -> list[Example]:
    generator = torch.Generator().manual_seed(1)
    return [Example((torch.randn(size, 1, 8, 8, generator=generator),)) for size in sizes]


@pytest.fixture
def real() -> torch.Tensor:
    return 3 + 5 * torch.randn(32, 1, 8, 8, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("scale", [0.1, 1, 30])
def test_activations_have_the_ranges_of_real_data(real, scale):
    real = scale * real
    model = trained_on(real)
    examples = examples_from_norms(model, random_rows(2, 5))
    assert [one.shapes() for one in examples] == [((rows, 1, 8, 8),) for rows in (2, 5, 2, 5, 2)]
    convolution = model[0]
    with torch.no_grad():
        expected, start = convolution(real).std(), convolution(random_rows(32)[0].args[0]).std()
        made = convolution(torch.cat([one.args[0] for one in examples])).std()
    assert not 0.7 * expected < start < 1.3 * expected
    assert 0.7 * expected < made < 1.3 * expected
    assert not any(leaf.requires_grad for one in examples for leaf in one.tensors())


def test_the_same_examples_come_every_time_and_no_two_are_alike(real):
    model = trained_on(real)
    first, again = (examples_from_norms(model, random_rows(4)) for _ in range(2))
    assert all(torch.equal(a.args[0], b.args[0]) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].args[0], first[1].args[0])


def test_the_model_and_the_rows_stay_as_they_were(real):
    model, rows = trained_on(real), random_rows(4)
    model.seen = seen = []
    model.register_forward_hook(lambda _module, args, _result: seen.append(args[0]))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    row = rows[0].args[0].clone()
    assert examples_from_norms(model, rows)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(rows[0].args[0], row)
    assert seen == []
    assert not any(one._forward_pre_hooks for one in model.modules())
    assert all(one.grad is None and one.requires_grad for one in model.parameters())


def test_inputs_that_are_no_floating_point_numbers_stay(real):
    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = trained_on(real)

        def forward(self, pictures, *, scores):
            return self.body(pictures)[:, scores]

    rows = [Example(one.args, {"scores": torch.tensor([3, 1])}) for one in random_rows(4)]
    examples = examples_from_norms(Chosen().eval(), rows)
    assert len(examples) == 4
    assert all(one.kwargs["scores"].tolist() == [3, 1] for one in examples)


def test_there_are_none_where_they_would_not_help(real):
    class NoGradients(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = trained_on(real)

        @torch.no_grad()
        def forward(self, pictures):
            return self.body(pictures)

    rows = random_rows(4)
    assert examples_from_norms(nn.Conv2d(1, 8, 3), rows) == []
    assert examples_from_norms(nn.BatchNorm2d(1, track_running_stats=False).eval(), rows) == []
    assert examples_from_norms(NoGradients().eval(), rows) == []
    assert examples_from_norms(trained_on(random_rows(32)[0].args[0]), rows) == []  # random is what it was trained on
    assert examples_from_norms(trained_on(real), []) == []


def test_it_tells_its_steps_and_can_be_cancelled(real):
    told = []

    def cancel(share, words):
        told.append((share, words))
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examples_from_norms(trained_on(real), random_rows(4), cancel)
    assert [words.partition(", ")[2] for _, words in told] == ["1 (x + 0)", "1 (x + 2)", "4 (x + 0)"]


class Slow(nn.Module):
    """A layer that takes its time, forward and backward."""

    def __init__(self, body: nn.Module, seconds: float) -> None:
        super().__init__()
        self.body, self.seconds = body, seconds

    def forward(self, pictures):
        for layer in self.body:
            time.sleep(self.seconds)
            pictures = layer(pictures)
        return pictures


def test_it_ends_in_time_and_keeps_what_is_better_until_then(real, monkeypatch):
    model, told = Slow(trained_on(real), 0.005).eval(), []
    monkeypatch.setattr(from_norms, "MOST_SECONDS", 4.0)
    started = time.monotonic()
    examples = examples_from_norms(model, random_rows(*[4] * 8), lambda share, words: told.append((share, words)))
    assert time.monotonic() - started < 4.5
    assert examples and len(told) > 20 * 0.7
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and max(later - one for one, later in itertools.pairwise(shares)) < 0.2
    monkeypatch.setattr(from_norms, "MOST_SECONDS", 0.3)
    slow, started = Slow(trained_on(real), 0.2).eval(), time.monotonic()
    assert examples_from_norms(slow, random_rows(4)) == [] and time.monotonic() - started < 1.0


def test_a_stop_is_heard_within_a_step(real):
    model, asked = Slow(trained_on(real), 0.05).eval(), time.monotonic() + 1.0
    reporter = Reporter(is_cancelled=lambda: time.monotonic() > asked)
    with pytest.raises(Cancelled):
        examples_from_norms(model, random_rows(4), reporter.advance)
    assert time.monotonic() - asked < 1.0
    assert not any(one._forward_pre_hooks for one in model.modules())
