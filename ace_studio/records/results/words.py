"""Figures of a result as text: each has the same digits on the command line, in the report and in the window."""

from ace_studio.records.results import Baseline, Result, TargetRun
from ace_studio.records.sweeps import SweepRow


def digits_of(value: float, count: int = 4) -> str:
    """Format of a figure with so many digits. Of two latencies, four give the speed-up that stands beside them."""
    exponent = int(f"{value:.{count - 1}e}".partition("e")[2] or 0)
    return f".{max(0, count - 1 - exponent)}f"


def ms_words(latency_ms: float | None) -> str:
    """``0.7521``: milliseconds with four digits; empty for None."""
    return "" if latency_ms is None else format(latency_ms, digits_of(latency_ms))


def measured_words(result: Result) -> str:
    """How the latencies were measured: ``input 1x3x32x32, 1 thread(s), 30 rounds``; empty if nothing was."""
    if result.baseline is None or result.baseline.latency_ms is None:
        return ""
    found, rounds = result.environment, result.baseline.latency_ms.n
    return f"input {found.get('measured_input', '')}, {found.get('threads')} thread(s), {rounds} rounds"


def megabytes(size_bytes: int | None) -> str:
    """``1.234 MB``; empty for None."""
    return "" if size_bytes is None else f"{size_bytes / 1e6:.3f} MB"


def ratio_words(run: TargetRun | SweepRow, name: str) -> str:
    """A speed-up with its interval; one whose interval contains 1 is not called a speed-up."""
    ratio, low, high = (getattr(run, name + end) for end in ("", "_low", "_high"))
    if ratio is None:
        return "not decided" if run.speed_undecided else ""
    if low is None or high is None:
        return "not decided" if run.speed_undecided else f"{ratio:.2f}x"
    bounds = f"({low:.2f} - {high:.2f})"
    if run.speed_undecided:
        return f"not decided {bounds}"
    return f"no difference seen {bounds}" if low <= 1 <= high else f"{ratio:.2f}x {bounds}"


def metric_words(one: Baseline | TargetRun) -> str:
    """``0.9870 (0.9810 - 0.9920)``; without the interval if the metric of single samples is not known."""
    if one.metric is None:
        return ""
    if one.metric_low is None or one.metric_high is None:
        return f"{one.metric:.4f}"
    return f"{one.metric:.4f} ({one.metric_low:.4f} - {one.metric_high:.4f})"


def drop_words(run: TargetRun) -> str:
    """The drop of the metric with its interval; one whose interval contains 0 is not called a drop."""
    if run.metric_drop is None:
        return ""
    if run.drop_low is None or run.drop_high is None:
        return f"{run.metric_drop:+.2%}"
    bounds = f"({run.drop_low:+.2%} to {run.drop_high:+.2%})"
    return f"no difference seen {bounds}" if run.drop_low <= 0 <= run.drop_high else f"{run.metric_drop:+.2%} {bounds}"
