"""A row of the contract that this version has no code for: it can be named, and says that it is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ace_studio.engine.targets.base import Availability, Lowered, LoweringJob, Target
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.plan import Precision

_REASON = "not part of this version of ACE Studio"


class AbsentTarget(Target):
    """A target whose name recipes may use, but that nothing is written for yet."""

    def __init__(self, name: str, label: str) -> None:
        self.name = name  # type: ignore[misc]  # rows of this class differ only in their names
        self.label = label  # type: ignore[misc]

    def available(self) -> Availability:
        """Never."""
        return Availability(ok=False, reason=_REASON)

    def precision_problem(self, precision: Precision) -> str:  # noqa: ARG002 - the answer is the same for all
        """Always the same reason."""
        return _REASON

    def op_problem(self, op: str, precision: Precision) -> str:  # noqa: ARG002 - the answer is the same for all
        """Always the same reason."""
        return _REASON

    def lower(self, job: LoweringJob) -> Lowered:  # noqa: ARG002 - nothing is built
        """Raise AceError(UNSUPPORTED)."""
        raise self._error()

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:  # noqa: ARG002 - nothing is opened
        """Raise AceError(UNSUPPORTED)."""
        raise self._error()

    def _error(self) -> AceError:
        return AceError.of(
            ErrorCode.UNSUPPORTED,
            f"The target {self.name} cannot be used",
            why=_REASON,
            remedy="Choose one of: eager, inductor, onnxruntime, openvino.",
        )
