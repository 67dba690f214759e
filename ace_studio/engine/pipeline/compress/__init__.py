"""Compression, step by step: plans are tried, candidates built, checked and measured, exported, and one is chosen.

`job` holds what the stages share; most other modules are one stage each, and `stages` is their order.
"""

from ace_studio.engine.pipeline.compress.choosing import Outcome
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.stages import run_stages
