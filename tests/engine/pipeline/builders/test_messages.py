"""Orders and answers survive as one line of JSON each."""

import msgspec

from ace_studio.engine.flow import BoundOp, BoundPlan
from ace_studio.engine.pipeline.builders.messages import AnyOrder, BuildOrder, ReadBackOrder, ReleaseOrder
from ace_studio.records.recipes.plan import Plan, Precision, Scheme


def test_every_order_is_one_line_and_comes_back_as_it_was():
    op = BoundOp(Precision.INT8_STATIC, Precision.FP32, "no kernel", Scheme(group_size=64))
    plan = BoundPlan(Plan(default=Precision.INT8_STATIC), {"linear": op})
    orders = [
        BuildOrder(number=1, target="eager", plan=plan, folder="f"), ReadBackOrder(number=1), ReleaseOrder(number=1)
    ]  # fmt: skip
    for order in orders:
        line = msgspec.json.encode(order)
        assert b"\n" not in line
        assert msgspec.json.decode(line, type=AnyOrder) == order
