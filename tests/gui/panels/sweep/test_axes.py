from ace_studio.records.sweeps import Axis
from tests.gui.panels.sweep.typing_axes import typed


def test_a_value_that_does_not_fit_is_told_and_nothing_starts(sweeping):
    typed(sweeping, Axis.PLAN, "int9")
    assert "int9" in sweeping.sweep.forecast.text()
    assert not sweeping.sweep.start_button.isEnabled()
    typed(sweeping, Axis.PLAN, "[fp32")
    assert sweeping.sweep.axes.fields[Axis.PLAN].property("role") == "bad"
    assert "close" in sweeping.sweep.axes.fields[Axis.PLAN].toolTip()


def test_a_value_is_added_from_the_list_that_has_only_others(sweeping):
    offer = sweeping.sweep.axes.offers[Axis.DEVICE]
    offer.setCurrentIndex(offer.findData("cpu"))
    offer.activated.emit(offer.currentIndex())
    sweeping.settle()
    assert sweeping.document.sweep.sweep.axes[Axis.DEVICE] == ("cpu",)
    assert offer.findData("cpu") == -1
