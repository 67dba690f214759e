"""Tests take every round of a measurement for an undisturbed one, whatever else this machine does."""

from ace_studio.engine import disturbance

really_waited_s = disturbance.waited_s


def pretend() -> None:
    """Let no thread of this process, or of one that is forked from it, seem to wait for a core."""
    disturbance.waited_s = lambda: 0.0
