"""Tests take every round of a measurement for an undisturbed one, whatever else this machine does."""

from ace_studio.engine import disturbance

really_waited_s, really_reference_ms = disturbance.waited_s, disturbance.reference_ms


def pretend() -> None:
    """Let no thread of this process, or of one that is forked from it, seem to wait, and the processor seem steady."""
    disturbance.waited_s, disturbance.reference_ms = lambda: 0.0, lambda: 0.1
