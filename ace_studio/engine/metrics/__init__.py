"""Built-in metrics on labelled data, with their confidence intervals."""

from ace_studio.engine.metrics.intervals import drop_interval, interval
from ace_studio.engine.metrics.kinds import METRICS, Metric
from ace_studio.engine.metrics.labelled import labelled_metric
from ace_studio.engine.metrics.score import Score, score_from
