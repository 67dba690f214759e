"""The phases of a job."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What the engine is doing; the text of the progress bar."""

    START = "Starting the engine"
    LOAD = "Loading the model"
    EAGER = "Running the model once"
    CAPTURE = "Capturing the graph"
    VERIFY = "Comparing with eager"
    CALIBRATE = "Calibrating"
    COMPRESS = "Compressing"
    LOWER = "Building"
    SENSITIVITY = "Finding sensitive ops"
    MEASURE = "Measuring latency"
    EVALUATE = "Measuring accuracy"
    EXPORT = "Saving and verifying"
    REPORT = "Writing the report"
    FIX = "Trying a fix"
    CATCH = "Running the script"
    PRUNE = "Pruning"
    FINETUNE = "Fine-tuning"
    ADVISE = "Looking for advice"
