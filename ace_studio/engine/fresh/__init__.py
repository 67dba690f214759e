"""New processes that call a function of this package: started from nothing, or forked from one that has torch."""

from ace_studio.engine.fresh.processes import Preparation, run_fresh
from ace_studio.engine.fresh.python import fresh_python
