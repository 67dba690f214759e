"""What pruning, improved rounding and fine-tuning changed in the weights, as tables."""

from PySide6.QtCore import Qt

from ace_studio.records.messages import PrunePreviewRequest, PruningPreviewed
from ace_studio.records.recipes.recipe import PruneMethod
from ace_studio.records.results import Improvement
from ace_studio.records.results.pruning import PrunedLayer, PruningReport
from tests.gui.charting import open_chart
from tests.gui.run_results import TABLE, result_of, show_result


def test_pruning_is_previewed_and_its_layers_are_listed_and_selectable(desk, charts):
    view = open_chart(desk, charts, "weights")
    assert not view.preview_button.isEnabled()
    assert "plan" in view.preview_button.toolTip()
    assert view._note.text() == "Choose what to prune in the plan first"
    desk.session.choices.set_choice("prune", method=PruneMethod.STRUCTURED)
    desk.settle()
    desk.bot.mouseClick(view.preview_button, Qt.MouseButton.LeftButton)
    request = desk.engine.requests[-1]
    assert isinstance(request, PrunePreviewRequest)
    layer = PrunedLayer(
        module="layers.1.mlp", type="Linear", shape_before="64x32", shape_after="32x32", weights_before=2048,
        weights_after=1024, macs_before=100, macs_after=50, bytes_before=8192, bytes_after=4096, sqnr_db=14.0,
    )  # fmt: skip
    report = PruningReport(
        method="structured", amount=0.5, layers=(layer,), parameters_before=10, parameters_after=5, metric_before=0.995,
        metric_after=0.41, sqnr_db=3.0, speed="smaller layers are faster on every target",
    )  # fmt: skip
    desk.session.apply(PruningPreviewed(job=request.job, report=report))
    desk.settle()
    assert view._note.text().startswith("Preview: structured  ·  metric 0.9950 → 0.4100")
    charts.window().resize(1000, 720)
    desk.settle()
    height = view._note.heightForWidth(view._note.width())
    assert view._note.height() >= height > view._note.fontMetrics().height(), "the words are never cut"
    place = view.table.visualRect(view.model.index(0, 0)).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("linear_1", "act_1")
    desk.session.choices.set_choice("prune", amount=0.25)
    desk.settle()
    assert view._note.text().startswith("Preview of earlier choices: structured")


def test_what_improved_the_rounding_is_listed_with_its_effect(desk, charts):
    tried = Improvement(method="equalize", before_db=20.0, after_db=24.5, kept=True, reason="4.5 dB better")
    show_result(desk, TABLE, result_of(TABLE, improvements=(tried,)))
    view = open_chart(desk, charts, "weights")
    view.which.setCurrentIndex(1)
    view.which.activated.emit(1)
    assert view._note.text() == "1 of 1 helped and were kept"
    assert [column.title for column in view.model.columns][2:4] == ["before", "after"]
