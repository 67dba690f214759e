from ace_studio.records.sweeps import SweepAdvanced
from tests.session.fake_sweep_link import sweep_row


def test_the_front_and_the_heat_map_are_drawn(sweeping):
    panel, verbs = sweeping.sweep, sweeping.session.sweep
    panel.start_button.click()
    for job, shape, ms in ((1, "x=1x1x8x8", 1.0), (2, "x=8x1x8x8", 4.0), (3, "x=8x1x16x16", 9.0)):
        row = sweep_row(job, ms, shape=shape)
        verbs.apply(SweepAdvanced(row=row, done=job, total=3, workers=1))
    sweeping.settle()
    for text in ("Front", "Batch and shape"):
        panel.view.setCurrentText(text)
        panel.view.activated.emit(panel.view.currentIndex())
    table = panel.heat
    assert [table.verticalHeaderItem(at).text() for at in range(2)] == ["batch 1", "batch 8"]
    assert table.item(1, 0).text() == "4.000 ms"
    assert table.item(0, 1).text() == ""
    assert "job 3" in panel.chart.widget.accessibleDescription()
