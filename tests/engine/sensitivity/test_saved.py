import pytest

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import PAIRS
from ace_studio.records.recipes.plan import Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from tests.engine.sensitivity.scans import scan_of


def test_a_cancelled_scan_goes_on_where_it_stopped(chain, tmp_path):
    captured, samples = chain
    whole = scan_of(captured, samples)
    expected = whole.run()
    asked = []

    def told(noise):
        asked.append(noise)

    first = scan_of(captured, samples, folder=tmp_path, reporter=Reporter(is_cancelled=lambda: len(asked) == 2))
    with pytest.raises(Cancelled):
        first.run(told)
    second = scan_of(captured, samples, folder=tmp_path)
    assert second.saved.samples_done == 2
    assert second.run(told) == expected
    assert len(asked) == 4
    assert second.saved.forwards == pytest.approx(whole.saved.forwards)
    third = scan_of(captured, samples, folder=tmp_path)
    assert third.saved.ended
    assert third.run() == expected


def test_other_data_grids_observers_and_styles_are_another_scan(chain, tmp_path):
    captured, samples = chain
    scan_of(captured, samples, folder=tmp_path).run()
    other = [[samples[0][0] + 1.0], *samples[1:]]
    assert not scan_of(captured, other, folder=tmp_path).saved.ended
    assert not scan_of(
        captured, samples, folder=tmp_path, scheme=Scheme(weights=WeightGranularity.PER_TENSOR)
    ).saved.ended
    assert not scan_of(captured, samples, folder=tmp_path, ranges=RangeChoice(Observer.MSE)).saved.ended
    assert not scan_of(captured, samples, folder=tmp_path, style=PAIRS).saved.ended
    assert scan_of(captured, samples, folder=tmp_path).saved.ended
