"""A plan for two targets that refuse different precisions."""

from msgspec.structs import replace

from ace_studio.records.messages import TargetRefusals
from ace_studio.records.recipes.plan import Precision
from tests.gui.run_results import REPORT

REFUSALS = (
    TargetRefusals(target="onnxruntime", operators={"aten.gelu.default": {"int8-dynamic": "gelu is no product",
                                                                          "int8-static": "gelu has no 8-bit kernel"}}),
    TargetRefusals(target="openvino", operators={"aten.gelu.default": {"int8-dynamic": "only products"}}),
)  # fmt: skip


def two_targets(desk, table):
    desk.capture(table, REPORT)
    desk.engine.by_itself = True
    desk.session._queue.ended()
    desk.session.choices.set_targets(("onnxruntime", "openvino"))
    desk.session.plan.set_default_precision(Precision.FP32)
    reports = [
        one for event in desk.engine._recorded["environment"] if hasattr(event, "report") for one in [event.report]
    ]
    targets = tuple(
        replace(one, available=True, precisions={"fp8": f"{one.name} has no fp8"}) for one in reports[0].targets
    )
    desk.session._state.change(environment=replace(reports[0], targets=targets), refusals=REFUSALS)
    desk.window.resize(1400, 1000)
    return desk.panel("plan")


def unfold(desk, two_target_plan, *paths):
    tree = two_target_plan.precision.modules
    for path in paths:
        tree._items[path].setExpanded(True)
    desk.settle()
    return tree


def place_of(desk, tree, item):
    tree.tree.scrollToItem(item)
    desk.settle()
    return tree.tree.visualItemRect(item)
