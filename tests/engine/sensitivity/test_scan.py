"""The sensitivity scan: its order is that of the long way, within its budget, and it goes on where it stopped."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS
from ace_studio.engine.sensitivity import Scan, ScanRequest, noise_db
from ace_studio.engine.sensitivity.scan import BUDGET
from ace_studio.records.recipes.plan import Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import Observer, Recipe

BOTH = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)


def _captured(module, *examples, tmp_path):
    module.eval()
    with torch.no_grad():
        return capture_model(
            LoadedModel(module=module, source=tmp_path, sha256=""),
            [Example(args=one) for one in examples],
            Recipe(),
            device=torch.device("cpu"),
            reporter=Reporter(),
        )[0]


def _random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _scan(captured, samples, *, precisions=BOTH, reporter=None, **options):
    return Scan(ScanRequest(captured=captured, samples=samples, precisions=precisions, **options), reporter)


def _rank(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return torch.tensor(ranks, dtype=torch.float64)


def _spearman(one, other):
    return float(torch.corrcoef(torch.stack([_rank(one), _rank(other)]))[0, 1])


class Chain(nn.Module):
    """Linear layers, some with an outlier channel, with norms and residual additions between them."""

    def __init__(self, outliers, *, width=16):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in outliers)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in outliers)
        with torch.no_grad():
            for layer, outlier in zip(self.layers, outliers, strict=True):
                layer.weight[3] *= outlier

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + F.gelu(layer(norm(x)))
        return x


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


@pytest.fixture
def chain(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Chain([1, 8, 1, 30, 2, 1, 15, 1, 4, 1])
    captured = _captured(module, (_random(2, 16),), (_random(5, 16),), tmp_path=tmp_path)
    return captured, [[_random(8, 16, seed=seed)] for seed in range(4)]


@pytest.fixture
def pyramid(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module = Pyramid()
    captured = _captured(module, (_random(2, 3, 8, 8),), (_random(5, 3, 8, 8),), tmp_path=tmp_path)
    return captured, [[_random(8, 3, 8, 8, seed=seed)] for seed in range(4)]


@pytest.fixture
def readers(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        module = Readers()
    captured = _captured(module, (_random(2, 6, 16),), (_random(5, 6, 16),), tmp_path=tmp_path)
    return captured, [[_random(8, 6, 16, seed=seed)] for seed in range(4)]


@pytest.mark.parametrize("name", ["chain", "pyramid", "readers"])
@pytest.mark.parametrize("granularity", list(WeightGranularity))
def test_the_order_is_that_of_running_each_op_low_by_itself_at_a_bounded_cost(name, granularity, request):
    captured, samples = request.getfixturevalue(name)
    scan = _scan(captured, samples, scheme=Scheme(weights=granularity))
    noise = scan.run()
    assert scan.saved.forwards <= BUDGET
    assert len(scan.watched) >= 9
    for precision in BOTH:
        true = [scan.alone(op_id, precision) for op_id in scan.watched_at(precision)]
        assert _spearman([noise[precision][op_id] for op_id in scan.watched_at(precision)], true) >= 0.9


def test_the_sum_over_all_ops_foretells_what_they_do_together(chain):
    captured, samples = chain
    scan = _scan(captured, samples, precisions=(Precision.INT8_STATIC,))
    noise = scan.run()[Precision.INT8_STATIC]
    together = scan.together(dict.fromkeys(scan.watched, Precision.INT8_STATIC))
    assert abs(noise_db(sum(noise.values())) - noise_db(together)) < 2.0


def test_a_layer_with_an_outlier_channel_stands_out_where_one_step_serves_the_whole_weight(chain):
    captured, samples = chain
    noise = _scan(captured, samples, scheme=Scheme(weights=WeightGranularity.PER_TENSOR)).run()[Precision.INT8_STATIC]
    kept = _scan(captured, samples).run()[Precision.INT8_STATIC]
    worst = max(noise, key=noise.__getitem__)
    assert captured.table.module[captured.table.op_id.index(worst)] == "layers.3"
    assert noise[worst] > 4 * kept[worst]


def test_a_graph_that_writes_into_its_values_gives_what_one_that_does_not_gives(tmp_path):
    class Block(nn.Module):
        def __init__(self, inplace):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))
            self.inplace = inplace

        def forward(self, x):
            for layer in self.layers:
                y = layer(x)
                x = x + (F.relu_(y) if self.inplace else F.relu(y))
            return x

    found = []
    for inplace in (False, True):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = Block(inplace)
        captured = _captured(module, (_random(2, 8),), (_random(5, 8),), tmp_path=tmp_path)
        found.append(list(_scan(captured, [[_random(8, 8)]]).run()[Precision.INT8_STATIC].values()))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_what_gives_whole_numbers_is_scanned_one_op_at_a_time_and_says_what_that_costs(tmp_path):
    class Labels(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return x.argmax(-1)

    captured = _captured(Labels(), (_random(2, 8),), (_random(5, 8),), tmp_path=tmp_path)
    scan = _scan(captured, [[_random(64, 8)]])
    noise = scan.run()
    assert set(noise[Precision.INT8_DYNAMIC]) == set(scan.watched)
    assert any("14 more forward passes" in note for note in scan.saved.notes)
    assert scan.saved.forwards >= 14


def test_a_cancelled_scan_goes_on_where_it_stopped(chain, tmp_path):
    captured, samples = chain
    whole = _scan(captured, samples)
    expected = whole.run()
    asked = []

    def told(noise):
        asked.append(noise)

    first = _scan(captured, samples, folder=tmp_path, reporter=Reporter(is_cancelled=lambda: len(asked) == 2))
    with pytest.raises(Cancelled):
        first.run(told)
    second = _scan(captured, samples, folder=tmp_path)
    assert second.saved.samples_done == 2
    assert second.run(told) == expected
    assert len(asked) == 4
    assert second.saved.forwards == pytest.approx(whole.saved.forwards)
    third = _scan(captured, samples, folder=tmp_path)
    assert third.saved.ended
    assert third.run() == expected


def test_other_data_or_grids_are_another_scan(chain, tmp_path):
    captured, samples = chain
    _scan(captured, samples, folder=tmp_path).run()
    other = [[samples[0][0] + 1.0], *samples[1:]]
    assert not _scan(captured, other, folder=tmp_path).saved.ended
    assert not _scan(
        captured, samples, folder=tmp_path, scheme=Scheme(weights=WeightGranularity.PER_TENSOR)
    ).saved.ended
    assert _scan(captured, samples, folder=tmp_path).saved.ended


def test_a_model_without_products_has_nothing_to_scan(tmp_path):
    class Doubler(nn.Module):
        def forward(self, x):
            return x * 2

    captured = _captured(Doubler(), (_random(2, 8),), (_random(5, 8),), tmp_path=tmp_path)
    assert _scan(captured, [[_random(2, 8)]]).run() == {Precision.INT8_STATIC: {}, Precision.INT8_DYNAMIC: {}}


def test_an_op_that_reaches_no_output_adds_no_noise(tmp_path):
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))

        def forward(self, x):
            self.layers[0](x)
            for layer in self.layers[1:]:
                x = torch.tanh(layer(x))
            return x

    captured = _captured(Aside(), (_random(2, 8),), (_random(5, 8),), tmp_path=tmp_path)
    noise = _scan(captured, [[_random(4, 8)]]).run()[Precision.INT8_STATIC]
    aside = [one for one in captured.table.op_rows() if captured.table.module[one] == "layers.0"]
    assert all(noise.get(captured.table.op_id[row], 0.0) == 0.0 for row in aside)


class Mixed(nn.Module):
    """Eight residual blocks of convolutions, their means side by side as an output of its own, and a head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(8))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv in self.convs:
            x = F.relu(x + conv(x))
        pooled = torch.cat([F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(F.leaky_relu(conv(x)), 1)], 1)
        return self.head(pooled.flatten(1)), pooled


@pytest.fixture
def mixed(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Mixed()
    captured = _captured(module, (_random(2, 3, 8, 8),), (_random(5, 3, 8, 8),), tmp_path=tmp_path)
    return captured, [[_random(8, 3, 8, 8, seed=seed)] for seed in range(4)]


@pytest.mark.parametrize("style", [READS, PAIRS, RESULTS], ids=lambda style: style.name)
def test_ops_that_follow_have_a_figure_where_the_runtime_rounds_there(mixed, style):
    captured, samples = mixed
    scan = _scan(captured, samples, style=style, precisions=(Precision.INT8_STATIC,))
    noise = scan.run()[Precision.INT8_STATIC]
    names = dict(zip(captured.table.op_id, captured.table.op, strict=True))
    following = {names[op_id].split(".")[1] for op_id in noise if scan.watched[op_id].follows}
    assert "add" in following
    assert ("cat" in following) is (style is PAIRS)
    assert not following & {"relu", "flatten"}  # rounded by the op in front, or not at all
    assert all(noise[op_id] > 0.0 for op_id in noise)
    assert scan.saved.forwards <= BUDGET
    true = [scan.alone(op_id, Precision.INT8_STATIC) for op_id in noise]
    assert _spearman(list(noise.values()), true) >= 0.9


def test_ops_that_follow_have_no_figure_at_other_precisions(mixed):
    captured, samples = mixed
    noise = _scan(captured, samples[:1], style=PAIRS).run()
    assert set(noise[Precision.INT8_DYNAMIC]) < set(noise[Precision.INT8_STATIC])
    assert len(noise[Precision.INT8_DYNAMIC]) == 11


def test_results_that_are_rounded_for_all_make_products_noisier(mixed):
    captured, samples = mixed
    reads, pairs = (
        _scan(captured, samples[:1], style=style, precisions=(Precision.INT8_STATIC,)).run()[Precision.INT8_STATIC]
        for style in (READS, PAIRS)
    )
    convolution = list(reads)[1]  # its result is added
    assert pairs[convolution] > 1.2 * reads[convolution]


def test_ranges_follow_from_the_recipes_observer(tmp_path):
    module = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
    captured = _captured(module, (_random(2, 16),), (_random(5, 16),), tmp_path=tmp_path)
    samples = [[_random(512, 16)]]
    samples[0][0][0, 0] = 1000.0
    first = captured.table.op_id[next(iter(captured.table.op_rows()))]
    found = {}
    for observer in (Observer.MIN_MAX, Observer.PERCENTILE):
        scan = _scan(
            captured, samples, ranges=RangeChoice(observer, percentile=99.9), precisions=(Precision.INT8_STATIC,)
        )
        scan.run()
        found[observer] = max(high for _, high in scan.saved.ranges.values())
    assert found[Observer.MIN_MAX] == 1000.0
    assert found[Observer.PERCENTILE] < 10.0
    assert first in scan.watched


def test_another_observer_or_style_is_another_scan(chain, tmp_path):
    captured, samples = chain
    _scan(captured, samples, folder=tmp_path).run()
    assert not _scan(captured, samples, folder=tmp_path, ranges=RangeChoice(Observer.MSE)).saved.ended
    assert not _scan(captured, samples, folder=tmp_path, style=PAIRS).saved.ended


def test_values_that_are_not_finite_stay_float(tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

        def forward(self, x, mask):
            y = self.layers[0](x)
            return self.layers[1](F.scaled_dot_product_attention(y, y, y, attn_mask=mask))

    mask = torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    captured = _captured(Masked(), (_random(2, 6, 8), mask), (_random(5, 6, 8), mask), tmp_path=tmp_path)
    noise = _scan(captured, [[_random(3, 6, 8), mask]]).run()
    assert all(0.0 < one < 1.0 for row in noise.values() for one in row.values())
