"""Building candidates in processes beside the job.

`builders` decides and hands out, `process` and `child` are the two ends of one process, `said` is what goes between
them, `stored` is the capture on disk, `elsewhere` a finished build as the job has it.
"""

from ace_studio.engine.pipeline.builders.builders import Builders, BuildJob, Wanted

__all__ = ["BuildJob", "Builders", "Wanted"]
