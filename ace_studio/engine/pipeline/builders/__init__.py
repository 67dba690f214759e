"""Building candidates in processes beside the job.

`builders` chooses and distributes the builds, and opens what is finished. `process` and `child` are the two ends of one
process, `messages` go between them, `stored` is the capture on disk.
"""

from ace_studio.engine.pipeline.builders.builders import Builders, BuildJob, Wanted
