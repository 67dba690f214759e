"""Saving artifacts, and proving each in a process that has never seen the model."""

from ace_studio.engine.export.artifact import (
    ModelSource,
    VerifyOrder,
    artifact_bytes,
    prepare_verification,
    verify_artifact,
)
from ace_studio.engine.export.partial import verify_subgraphs
