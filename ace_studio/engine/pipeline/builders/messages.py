"""Messages between the job and a build process, one line of JSON each: orders to it, answers from it."""

import msgspec

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.errors import Problem
from ace_studio.records.results import Improvement, Warning


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all orders, in a file beside the stored capture."""

    threads: int
    ranges: RangeChoice
    sizes: dict[str, tuple[int, ...]] = {}


class BuildOrder(msgspec.Struct, frozen=True, kw_only=True, tag="build"):
    """Lower a plan and write the artifact; the answer is `Built` or `Refused`."""

    number: int
    """The key of the build in the process."""
    target: str
    plan: BoundPlan
    folder: str
    """Existing folder for scratch files. The artifact goes into its subfolder `ARTIFACT`."""


class ReadBackOrder(msgspec.Struct, frozen=True, kw_only=True, tag="read-back"):
    """Ask for the op reports of a build; the answer is `ReadBack` or `Refused`."""

    number: int


class ReleaseOrder(msgspec.Struct, frozen=True, kw_only=True, tag="release"):
    """Release a build. There is no answer."""

    number: int


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The capture was read and equals the one that was written."""


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
    """The order failed, with the error that the job itself would have raised."""

    problem: Problem


AnyOrder = BuildOrder | ReadBackOrder | ReleaseOrder
AnyAnswer = Ready | Built | ReadBack | Refused
ARTIFACT = "artifact"
"""Subfolder of an order's folder that holds the artifact alone."""
