"""The table of all charts."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.style import Colours, translate_fields
from ace_studio.session.session import Session


@dataclass(frozen=True, kw_only=True)
class ChartRow:
    """One chart, loaded when it is first seen."""

    id: str
    text: str
    module: str
    view: str
    tip: str

    def __post_init__(self) -> None:
        translate_fields(self, "text", "tip")

    def build(self, session: Session, colours: Colours) -> ChartView:
        """Import and make it."""
        make: Callable[[Session, Colours], ChartView] = getattr(
            import_module(f"ace_studio.gui.charts.{self.module}"), self.view
        )
        return make(session, colours)


CHARTS: tuple[ChartRow, ...] = (
    ChartRow(id="overview", text="Overview", module="overview", view="Overview", tip="Latency, accuracy and size"),
    ChartRow(id="trade-off", text="Trade-off", module="trade_off", view="TradeOff",
             tip="Every run as a point, the front, and the goal as lines that can be dragged"),
    ChartRow(id="time", text="Time by op", module="op_time", view="OpTime",
             tip="Where the time goes, in the baseline and in each run"),
    ChartRow(id="roofline", text="Roofline", module="roofline", view="Roofline",
             tip="Every op against what this machine can do at most"),
    ChartRow(id="error", text="Error along the graph", module="error_line", view="ErrorLine",
             tip="How the error of the selected run grows from op to op"),
    ChartRow(id="sensitivity", text="Sensitivity", module="sensitivity", view="SensitivityChart",
             tip="Which ops disturb the outputs most when they are compressed"),
    ChartRow(id="values", text="Values at an op", module="values", view="ValuesChart",
             tip="What one op gives for an example, and its weights: float, compressed, difference"),
    ChartRow(id="transitions", text="Precision changes", module="transitions", view="Transitions",
             tip="Which precision feeds which, planned or actual"),
    ChartRow(id="weights", text="Work on weights", module="weights", view="WeightWork",
             tip="Pruning with a preview, better rounding, fine-tuning: what each did"),
    ChartRow(id="worst", text="Worst samples", module="worst", view="WorstSamples",
             tip="The examples that the selected run does worst on"),
    ChartRow(id="differences", text="A against B", module="differences", view="Differences",
             tip="Latency, speed-up and size of B over A, with 95 % intervals"),
)  # fmt: skip
