"""Figures of devices: which there are, the speed-ups among them, and how they are shown. Clocks are never mixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ace_studio.records.results import Result
from ace_studio.records.results.runs import DeviceFigure, TargetRun
from ace_studio.records.results.words import ms_words

SECTION_BEGIN, SECTION_END = "<!-- devices -->", "<!-- /devices -->"
"""Around the figures of devices in ``report.html``, so that a later measurement replaces them."""


def device_names(runs: Sequence[TargetRun]) -> tuple[str, ...]:
    """The devices that any of the runs has a figure of, in order of measurement."""
    figures = sorted((figure.date, figure.device) for run in runs for figure in run.devices)
    return tuple(dict.fromkeys(name for _, name in figures))


def figure_on(run: TargetRun, device: str) -> DeviceFigure | None:
    """The figure of a run on a device."""
    return next((figure for figure in run.devices if figure.device == device), None)


def speedup_between(reference: DeviceFigure, figure: DeviceFigure) -> float | None:
    """Reference over figure, above 1 the figure is faster; None unless both are of one clock.

    One clock: the same device, machine, threads and session. What was measured at another time or elsewhere differs
    for other reasons than the artifact.
    """
    for name in ("device", "machine", "session", "threads"):
        if getattr(reference, name) != getattr(figure, name):
            return None
    return reference.latency_ms.p50 / figure.latency_ms.p50


def reference_run(runs: Sequence[TargetRun], index: int, device: str) -> int | None:
    """Index of the run that another is compared with on a device: the fp32 one of its target, else any fp32 one."""
    mine = figure_on(runs[index], device)
    if mine is None:
        return None
    found = []
    for other, run in enumerate(runs):
        figure = figure_on(run, device)
        if figure and run.is_exact and speedup_between(figure, mine) is not None:
            found.append((run.target != runs[index].target, other))
    return min(found)[1] if found else None


def speedup_on(runs: Sequence[TargetRun], index: int, device: str) -> float | None:
    """Speed-up of a run on a device over `reference_run` there; None if there is no such run."""
    other, mine = reference_run(runs, index, device), figure_on(runs[index], device)
    reference = None if other is None else figure_on(runs[other], device)
    return None if mine is None or reference is None else speedup_between(reference, mine)


def with_figures(result: Result, figures: Mapping[int, DeviceFigure]) -> Result:
    """The result with figures added to its runs; an older one of the same device gives way."""
    runs = tuple(
        run
        if (figure := figures.get(index)) is None
        else replace(run, devices=(*(one for one in run.devices if one.device != figure.device), figure))
        for index, run in enumerate(result.runs)
    )
    return replace(result, runs=runs)


def is_same_run(one: Result, other: Result) -> bool:
    """Whether two results are of one run, whatever devices measured since."""
    bare = [tuple(replace(run, devices=()) for run in result.runs) for result in (one, other)]
    return one.fingerprint == other.fingerprint and one.seconds == other.seconds and bare[0] == bare[1]


def figure_words(runs: Sequence[TargetRun], index: int, device: str) -> tuple[str, str]:
    """``1.234 (1.200 - 1.250)`` in ms and ``2.10x``; empty where nothing was measured."""
    figure = figure_on(runs[index], device)
    if figure is None:
        return "", ""
    spread = "" if figure.low == figure.high else f" ({ms_words(figure.low)} - {ms_words(figure.high)})"
    faster = speedup_on(runs, index, device)
    return f"{ms_words(figure.latency_ms.p50)}{spread}", "" if faster is None else f"{faster:.2f}x"


def state_words(figure: DeviceFigure) -> str:
    """How the device was: ``box (Xeon), 1 thread, onnxruntime 1.23, governor powersave, 3100 MHz, 54 °C``."""
    threads = f"{figure.threads} thread{'' if figure.threads == 1 else 's'}"
    parts = [figure.machine, threads, figure.runtime]
    if figure.governor:
        parts.append(f"governor {figure.governor}")
    if figure.frequency_mhz is not None:
        parts.append(f"{figure.frequency_mhz:.0f} MHz")
    if figure.temperature_c is not None:
        parts.append(f"{figure.temperature_c:.0f} °C")
    return ", ".join(filter(None, [*parts, figure.note]))


def device_section(result: Result) -> str:
    """The figures as HTML between the two marks: a column for each device, and below it how the devices were."""
    from ace_studio.records.report_page import page_environment  # noqa: PLC0415 - the window needs no templates

    environment = page_environment(Path(__file__).parent)
    environment.globals.update(figure_words=figure_words, state_words=state_words)
    names = device_names(result.runs)
    page = environment.get_template("on_devices.html.j2").render(runs=result.runs, names=names) if names else ""
    return f"{SECTION_BEGIN}{page}{SECTION_END}"


def with_section(page: str, result: Result) -> str:
    """A report with the figures of the devices as they are now; before the end of a page that has no section yet."""
    before, mark, rest = page.partition(SECTION_BEGIN)
    if not mark:
        before, mark, rest = page.rpartition("</body>")
        return f"{before}{device_section(result)}{mark}{rest}"
    return f"{before}{device_section(result)}{rest.partition(SECTION_END)[2]}"
