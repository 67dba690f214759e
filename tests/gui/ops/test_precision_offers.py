"""Which precisions the chosen targets support, and why not the others."""

from msgspec.structs import replace

from ace_studio.gui.ops.precision_offers import op_offers, precision_offers
from ace_studio.records.recipes.plan import Precision


def test_the_line_above_the_graph_greys_it_for_the_selected_ops_only(desk, two_target_plan):
    graph = desk.window.workbench.panel("graph")
    for op_ids, possible in ((("act_1",), False), (("act_1", "linear_1"), True), (("linear_1",), True)):
        desk.session.view.select(op_ids)
        desk.settle()
        item = graph.precision.model().item(graph.precision.findData("int8-dynamic"))
        assert item.isEnabled() is possible
        assert not graph.precision.model().item(graph.precision.findData("fp8")).isEnabled()


def test_a_target_that_is_not_chosen_has_no_say(desk, two_target_plan):
    desk.session.choices.set_targets(("inductor",))
    assert op_offers(desk.document, ("act_1",))["int8-dynamic"].is_possible


def test_a_precision_that_no_chosen_target_can_do_is_grey_and_says_why(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    layered_plan = desk.panel("plan")
    environment = desk.document.environment
    targets = tuple(
        replace(one, available=one.name == "onnxruntime", precisions={"bf16": "its kernels have no bf16"})
        for one in environment.targets
    )
    desk.session._state.change(environment=replace(environment, targets=targets))
    desk.settle()
    item = layered_plan.precision.default.model().item(layered_plan.precision.default.findData("bf16"))
    assert not item.isEnabled()
    assert "its kernels have no bf16" in item.toolTip()
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "None of the chosen targets" in layered_plan.precision._refused.text()


def test_a_precision_that_one_of_two_targets_can_do_is_offered_with_the_other_one_named(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    desk.settle()
    environment = desk.document.environment
    first, second = [one.name for one in environment.targets][:2]
    targets = tuple(
        replace(one, available=one.name in (first, second), precisions={"fp8": "no"} if one.name == first else {})
        for one in environment.targets
    )
    desk.session._state.change(environment=replace(environment, targets=targets))
    offer = precision_offers(desk.document)["fp8"]
    assert offer.is_possible
    assert offer.words == f"{first}: no"
