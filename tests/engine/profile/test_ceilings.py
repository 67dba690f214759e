"""Ceilings of the machine: plausible, kept, raised by a quieter run, never in the way."""

from pathlib import Path

import msgspec
import pytest
import torch

from ace_studio.engine.profile import ceilings
from ace_studio.engine.profile.ceilings import ceilings_here, measure_ceilings
from ace_studio.records.results import Ceilings

SLOW = Ceilings(
    gflops={"fp32": 1.0}, gbytes_per_s=1.0, gbytes_per_s_at={2**20: 9.0, 2**27: 1.0}, spread=0.1, threads=1, machine="a"
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_what_is_measured_is_above_what_real_work_reaches():
    torch.set_num_threads(1)
    found = measure_ceilings(threads=1, machine="this")
    assert found.gflops["fp32"] > 1
    assert 0 < found.gbytes_per_s <= max(found.gbytes_per_s_at.values()) * 1.5
    assert 0 <= found.spread < 1


def test_they_are_measured_once_per_machine_and_threads(tmp_path: Path, monkeypatch):
    measured = []

    def measure(*, threads, machine):
        measured.append(threads)
        return msgspec.structs.replace(SLOW, threads=threads, machine=machine)

    monkeypatch.setattr(ceilings, "measure_ceilings", measure)
    first = ceilings_here("A processor", threads=1, folder=tmp_path)
    assert ceilings_here("A processor", threads=1, folder=tmp_path) == first
    ceilings_here("A processor", threads=2, folder=tmp_path)
    ceilings_here("Another", threads=1, folder=tmp_path)
    assert measured == [1, 2, 1]


def test_a_busy_measurement_is_repeated_another_day_and_only_raised(tmp_path: Path, monkeypatch):
    rates = iter([3.0, 2.0, 5.0])
    monkeypatch.setattr(
        ceilings,
        "measure_ceilings",
        lambda *, threads, machine: msgspec.structs.replace(
            SLOW, gflops={"fp32": next(rates)}, spread=0.9, machine=machine
        ),
    )
    day = 86_400.0
    now = [0.0]
    monkeypatch.setattr(ceilings.time, "time", lambda: now[0])
    found = []
    for now[0] in (0.0, day * 0.5, day * 1.5, day * 3):
        found.append(ceilings_here("A", threads=1, folder=tmp_path).gflops["fp32"])
    assert found == [3.0, 3.0, 3.0, 5.0]


def test_a_damaged_file_and_a_folder_that_cannot_be_written_do_no_harm(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ceilings, "measure_ceilings", lambda *, threads, machine: SLOW)
    for path in (tmp_path / "a", tmp_path / "file"):
        path.mkdir() if path.name == "a" else path.write_text("no folder")
        assert ceilings_here("A", threads=1, folder=path) is SLOW
    next((tmp_path / "a").iterdir()).write_text("{ damaged")
    assert ceilings_here("A", threads=1, folder=tmp_path / "a") is SLOW
