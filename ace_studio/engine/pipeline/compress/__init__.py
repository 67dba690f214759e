"""Compression, step by step: plans are tried, candidates built, checked and measured, exported, and one is chosen.

`bench` is what the steps share; each other module is one step, and `job` is their order.
"""

from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.choosing import Outcome
from ace_studio.engine.pipeline.compress.job import run_job

__all__ = ["Bench", "Outcome", "run_job"]
