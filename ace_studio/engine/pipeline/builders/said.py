"""What the job and a process that builds for it say to each other: one line of JSON each, orders down, answers up."""

from __future__ import annotations

import msgspec

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.errors import Problem
from ace_studio.records.results import Improvement, Warning


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What all orders have in common, in a file beside the stored capture."""

    threads: int
    ranges: RangeChoice


class BuildOrder(msgspec.Struct, frozen=True, kw_only=True, tag="build"):
    """Lower a plan and write the artifact; the answer is `Built` or `Refused`."""

    number: int
    """Under which the process keeps what it built."""
    target: str
    plan: BoundPlan
    folder: str
    """For scratch files; exists. The artifact goes into `ARTIFACT` in it."""


class ReadBackOrder(msgspec.Struct, frozen=True, kw_only=True, tag="read-back"):
    """Say what the runtime does with every op; the answer is `ReadBack` or `Refused`."""

    number: int


class ReleaseOrder(msgspec.Struct, frozen=True, kw_only=True, tag="release"):
    """Let go of a build. There is no answer."""

    number: int


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The capture was read, and is the one that was written."""


class Built(msgspec.Struct, frozen=True, kw_only=True, tag="built"):
    """A build is on disk."""

    path: str
    """The artifact, as `Target.load` takes it."""
    seconds: float
    runs_in_torch: bool
    warnings: tuple[Warning, ...] = ()
    improvements: tuple[Improvement, ...] = ()


class ReadBack(msgspec.Struct, frozen=True, kw_only=True, tag="read-back"):
    """What `Lowered.read_back` gave."""

    ops: tuple[OpActual, ...]


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """What was asked for cannot be had, as the error that the job would have seen itself."""

    problem: Problem


AnyOrder = BuildOrder | ReadBackOrder | ReleaseOrder
AnyAnswer = Ready | Built | ReadBack | Refused
ARTIFACT = "artifact"
"""Folder of an order's folder that holds the artifact and nothing else."""
