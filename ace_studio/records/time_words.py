"""What runs take, in words."""

from ace_studio.records.messages import Phase
from ace_studio.records.results import Result

_LEAST_SHARE = 0.02
_MOST_NAMED = 6


def time_words(result: Result) -> str:
    """``41 s: building 20 s, measuring latency 9 s``, the longest first, without what hardly took any; or empty."""
    if not result.seconds:
        return ""
    longest = sorted(result.phase_seconds.items(), key=lambda one: -one[1])[:_MOST_NAMED]
    named = [(name, seconds) for name, seconds in longest if seconds >= _LEAST_SHARE * result.seconds]
    parts = ", ".join(f"{_phase_words(name)} {seconds_words(seconds)}" for name, seconds in named)
    return f"{seconds_words(result.seconds)}: {parts}" if parts else seconds_words(result.seconds)


def seconds_words(seconds: float) -> str:
    """``0.4 s``, ``41 s``, ``12 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 119.5 else f"{seconds / 60:.0f} min"


def _phase_words(name: str) -> str:
    """A later version may know other phases."""
    found = Phase.__members__.get(name.upper())
    return found.value.lower() if found else name
