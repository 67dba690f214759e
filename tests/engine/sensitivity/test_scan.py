from itertools import product

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import nn

from ace_studio.engine.quantize import fake_quantize
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS
from ace_studio.engine.sensitivity import noise_db
from ace_studio.engine.sensitivity.scan import BUDGET
from ace_studio.records.recipes.plan import Precision, Scheme, WeightGranularity
from tests.engine.sensitivity.scans import BOTH, captured_of, random_values, scan_of, spearman


class Pyramid(nn.Module):
    """Convolutions, each followed by an addition, with scales of very different size in their weights."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(8))
        self.head = nn.Linear(8, 4)
        with torch.no_grad():
            for index, conv in enumerate(self.convs):
                conv.weight *= 0.3 + 0.5 * ((5 * index) % 8)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv in self.convs:
            x = F.hardtanh(x + 0.5 * conv(x))
        return self.head(x.mean((2, 3)))


class Readers(nn.Module):
    """Attention over a sequence, three times, with a gate in front."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 16)
        self.parts = nn.ModuleList(nn.Linear(16, 48) for _ in range(3))
        self.outs = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        x = torch.sigmoid(self.gate(x)) * x
        for index, (part, out) in enumerate(zip(self.parts, self.outs, strict=True)):
            q, k, v = part(x).chunk(3, dim=-1)
            weights = torch.softmax(q @ k.transpose(1, 2), dim=-1)
            x = x + out(weights @ v) * 4.0 ** (1 - index)
        return x


@pytest.fixture(scope="module")
def pyramid():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module = Pyramid()
    captured = captured_of(module, (random_values(2, 3, 8, 8),), (random_values(5, 3, 8, 8),))
    return captured, [[random_values(8, 3, 8, 8, seed=seed)] for seed in range(4)]


@pytest.fixture(scope="module")
def readers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        module = Readers()
    captured = captured_of(module, (random_values(2, 6, 16),), (random_values(5, 6, 16),))
    return captured, [[random_values(8, 6, 16, seed=seed)] for seed in range(4)]


KEPT = {
    ("chain", WeightGranularity.PER_TENSOR),
    ("pyramid", WeightGranularity.PER_CHANNEL),
    ("readers", WeightGranularity.PER_CHANNEL),
}


@pytest.mark.parametrize(
    ("name", "granularity"),
    [
        pytest.param(*row, marks=[pytest.mark.full] * (row not in KEPT))
        for row in product(["chain", "pyramid", "readers"], WeightGranularity)
    ],
)
def test_the_order_is_that_of_running_each_op_low_by_itself_at_a_bounded_cost(name, granularity, request):
    captured, samples = request.getfixturevalue(name)
    scan = scan_of(captured, samples, scheme=Scheme(weights=granularity))
    noise = scan.run()
    assert scan.saved.forwards <= BUDGET
    assert len(scan.watched) >= 9
    for precision in BOTH:
        true = [scan.alone(op_id, precision) for op_id in scan.watched_at(precision)]
        assert spearman([noise[precision][op_id] for op_id in scan.watched_at(precision)], true) >= 0.9


def test_the_sum_over_all_ops_foretells_what_they_do_together(chain):
    captured, samples = chain
    scan = scan_of(captured, samples, precisions=(Precision.INT8_STATIC,))
    noise = scan.run()[Precision.INT8_STATIC]
    together = scan.together(dict.fromkeys(scan.watched, Precision.INT8_STATIC))
    assert abs(noise_db(sum(noise.values())) - noise_db(together)) < 2.0


def test_a_layer_with_an_outlier_channel_stands_out_where_one_scale_serves_the_whole_weight(chain):
    captured, samples = chain
    noise = scan_of(captured, samples, scheme=Scheme(weights=WeightGranularity.PER_TENSOR)).run()[Precision.INT8_STATIC]
    kept = scan_of(captured, samples).run()[Precision.INT8_STATIC]
    worst = max(noise, key=noise.__getitem__)
    assert captured.table.module[captured.table.op_id.index(worst)] == "layers.3"
    assert noise[worst] > 4 * kept[worst]


def test_what_gives_whole_numbers_is_scanned_one_op_at_a_time_and_says_what_that_costs():
    class Labels(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return x.argmax(-1)

    captured = captured_of(Labels(), (random_values(2, 8),), (random_values(5, 8),))
    scan = scan_of(captured, [[random_values(64, 8)]])
    noise = scan.run()
    assert set(noise[Precision.INT8_DYNAMIC]) == set(scan.watched)
    assert any("14 more forward passes" in note for note in scan.saved.notes)
    assert scan.saved.forwards >= 14


def test_an_op_that_reaches_no_output_adds_no_noise():
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))

        def forward(self, x):
            self.layers[0](x)
            for layer in self.layers[1:]:
                x = torch.tanh(layer(x))
            return x

    captured = captured_of(Aside(), (random_values(2, 8),), (random_values(5, 8),))
    noise = scan_of(captured, [[random_values(4, 8)]]).run()[Precision.INT8_STATIC]
    aside = [one for one in captured.table.op_rows() if captured.table.module[one] == "layers.0"]
    assert all(noise.get(captured.table.op_id[row], 0.0) == 0.0 for row in aside)


def test_results_that_are_rounded_for_all_make_products_noisier(mixed, monkeypatch):
    monkeypatch.setattr(fake_quantize, "int8_weight_bits", lambda: 8)  # with 7, the noise of the weights hides it
    captured, samples = mixed
    reads, pairs = (
        scan_of(captured, samples[:1], style=style, precisions=(Precision.INT8_STATIC,)).run()[Precision.INT8_STATIC]
        for style in (READS, PAIRS)
    )
    convolution = list(reads)[1]  # its result is added
    assert pairs[convolution] > 1.2 * reads[convolution]


def test_a_model_without_products_has_nothing_to_scan():
    class Doubler(nn.Module):
        def forward(self, x):
            return x * 2

    captured = captured_of(Doubler(), (random_values(2, 8),), (random_values(5, 8),))
    assert scan_of(captured, [[random_values(2, 8)]]).run() == {Precision.INT8_STATIC: {}, Precision.INT8_DYNAMIC: {}}


@pytest.mark.parametrize("style", [READS, PAIRS, RESULTS], ids=lambda style: style.name)
def test_ops_that_follow_have_a_figure_where_the_runtime_rounds_there(mixed, style):
    captured, samples = mixed
    scan = scan_of(captured, samples, style=style, precisions=(Precision.INT8_STATIC,))
    noise = scan.run()[Precision.INT8_STATIC]
    names = dict(zip(captured.table.op_id, captured.table.op, strict=True))
    following = {names[op_id].split(".")[1] for op_id in noise if scan.watched[op_id].follows}
    assert "add" in following
    assert ("cat" in following) is (style is PAIRS)
    assert not following & {"relu", "flatten"}  # rounded by the op in front, or not at all
    assert all(noise[op_id] > 0.0 for op_id in noise)
    assert scan.saved.forwards <= BUDGET
    true = [scan.alone(op_id, Precision.INT8_STATIC) for op_id in noise]
    assert spearman(list(noise.values()), true) >= 0.9


def test_ops_that_follow_have_no_figure_at_other_precisions(mixed):
    captured, samples = mixed
    noise = scan_of(captured, samples[:1], style=PAIRS).run()
    assert set(noise[Precision.INT8_DYNAMIC]) < set(noise[Precision.INT8_STATIC])
    assert len(noise[Precision.INT8_DYNAMIC]) == 11
