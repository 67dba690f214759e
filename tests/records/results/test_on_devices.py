"""Figures of devices: columns, and speed-ups between figures of one clock only."""

import pytest
from msgspec.structs import replace

from ace_studio.records.results import DeviceFigure, on_devices
from tests.cli.fake_engine import LATENCY, result
from tests.jobs.devices.runs import result_of, run_of


def figure(ms=2.0, device="box", **changes) -> DeviceFigure:
    plain = DeviceFigure(
        device=device, machine="m", session="s", date="2026-01-01", latency_ms=replace(LATENCY, p50=ms), low=ms * 0.9,
        high=ms * 1.1, threads=1, runtime="onnxruntime 1",
    )  # fmt: skip
    return replace(plain, **changes)


@pytest.mark.parametrize("changed", [{"device": "phone"}, {"machine": "n"}, {"session": "t"}, {"threads": 2}])
def test_clocks_are_never_mixed(changed):
    assert on_devices.speedup_between(figure(4.0), figure(2.0)) == 2.0
    assert on_devices.speedup_between(figure(4.0), figure(2.0, **changed)) is None
    runs = (run_of(devices=(figure(4.0),)), run_of(precision="int8-static", devices=(figure(2.0, **changed),)))
    assert on_devices.speedup_on(runs, 1, changed.get("device", "box")) is None


def test_the_latency_of_the_run_itself_is_no_reference():
    runs = (run_of(), run_of(precision="int8-static", devices=(figure(),)))  # fp32 was measured by the run only
    assert runs[0].latency_ms is not None and on_devices.speedup_on(runs, 1, "box") is None


def test_a_speedup_is_over_the_float_run_of_the_same_target_first():
    runs = (
        run_of("openvino", devices=(figure(8.0),)),
        run_of(devices=(figure(4.0),)),
        run_of(precision="int8-static", devices=(figure(2.0),)),
    )
    assert on_devices.reference_run(runs, 2, "box") == 1 and on_devices.speedup_on(runs, 2, "box") == 2.0
    assert on_devices.speedup_on((runs[0], runs[2]), 1, "box") == 4.0 and on_devices.speedup_on(runs, 0, "box") == 1.0
    assert on_devices.figure_words(runs, 2, "box") == ("2.000 (1.800 - 2.200)", "2.00x")
    assert on_devices.figure_words(runs, 2, "phone") == ("", "") and on_devices.speedup_on(runs, 2, "phone") is None


def test_a_newer_figure_replaces_the_older_of_its_device_only():
    first = on_devices.with_figures(result(), {0: figure(2.0)})
    both = on_devices.with_figures(first, {0: figure(3.0, "phone", date="2026-01-02")})
    again = on_devices.with_figures(both, {0: figure(1.0)})
    assert [(one.device, one.latency_ms.p50) for one in again.runs[0].devices] == [("phone", 3.0), ("box", 1.0)]
    assert on_devices.device_names(both.runs) == ("box", "phone") and on_devices.is_same_run(again, result())
    assert not on_devices.is_same_run(again, replace(result(), seconds=9.0))


def test_the_section_of_a_report_is_replaced_and_escaped():
    nasty = figure(machine="<script>x</script>")
    found = on_devices.with_figures(result_of(run_of()), {0: nasty})
    page = on_devices.with_section("<html><body><p>old</p></body></html>", found)
    assert page.count("<h2>Devices</h2>") == 1 and "box: p50 ms" in page and "<script>" not in page
    assert page.endswith("</body></html>") and on_devices.with_section(page, found) == page
    assert on_devices.with_section(page, result()).count("<h2>Devices</h2>") == 0
    assert on_devices.device_section(result()).startswith(on_devices.SECTION_BEGIN)
