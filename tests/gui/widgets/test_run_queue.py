"""The runs that were asked for, in their order: one goes on, others wait and can be moved or taken out."""

from __future__ import annotations

from ace_studio.gui.widgets.run_queue import preview_words
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.run_preview import RunPreview
from tests.gui.gestures import LEFT


def shown(queue):
    return [queue.list.item(at).text() for at in range(queue.list.count())]


def test_runs_wait_in_a_list_are_moved_and_taken_out_by_clicks(desk):
    desk.traced()
    desk.engine.by_itself = False
    run = desk.panel("run")
    assert not run.queue.isVisible()
    for precision in (Precision.FP32, Precision.FP16, Precision.BF16):
        desk.session.plan.set_default_precision(precision)
        desk.do("run")
    assert run.run_button.text() == "Run after this (F6)"
    assert [text.split(",")[0] for text in shown(run.queue)] == [
        "1.  running:  fp32", "2.  waiting:  fp16", "3.  waiting:  bf16",
    ]  # fmt: skip
    assert "fp16 → bf16" in run.queue.list.item(2).toolTip()
    run.queue.list.setCurrentRow(2)
    assert not run.queue.down.isEnabled()
    desk.bot.mouseClick(run.queue.up, LEFT)
    desk.settle()
    assert shown(run.queue)[1].startswith("2.  waiting:  bf16")
    desk.bot.mouseClick(run.queue.remove, LEFT)
    desk.settle()
    assert len(shown(run.queue)) == 2
    desk.engine.answer(desk.engine.requests[-1])
    desk.settle()
    assert [text.split("  ")[1] for text in shown(desk.panel("run").queue)] == ["done:", "running:"]


def test_a_run_says_what_it_will_do_and_cost(desk):
    panel = desk.traced().panel("run")
    assert "No earlier run of this model" in panel.preview.text()
    desk.do("run")
    panel = desk.panel("run")
    assert panel.preview.isVisible()
    found = RunPreview(targets=("a", "b"), is_searched=False, builds=2, seconds=110.0)
    assert preview_words(found) == (
        "Run builds 1 plan for 2 targets (a, b): 2 builds. About 1:50, by the last run of this model."
    )
