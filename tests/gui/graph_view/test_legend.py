"""The legend of the colouring; a click on an entry dims its ops, another restores them."""

from tests.gui.looking import LEFT, colours_in, picture_of, precision_colouring


def test_a_colouring_is_drawn_and_explained_with_letters(view):
    view.canvas.open_everything()
    view.set_colouring(precision_colouring(view.picture.table))
    assert view.picture.colouring.letters == ("F", "I")
    assert "#11aa77" in colours_in(picture_of(view))
    assert [button.text() for button in view.legend.entries.values()] == ["fp32  14", "int8-static  6"]
    assert view.legend.entries[1].accessibleName() == "int8-static, 6 ops"


def test_a_click_in_the_legend_dims_the_ops_of_an_entry(view, qtbot):
    view.canvas.open_everything()
    view.set_colouring(precision_colouring(view.picture.table))
    entry = view.legend.entries[1]
    qtbot.mouseClick(entry, LEFT)
    assert "#11aa77" not in colours_in(picture_of(view).copy(300, 0, 400, 760))
    qtbot.mouseClick(entry, LEFT)
    assert "#11aa77" in colours_in(picture_of(view))


def test_the_legend_folds_to_its_title(view, qtbot):
    tall = view.legend.height()
    qtbot.mouseClick(view.legend.title, LEFT)
    assert view.legend.height() < tall
    assert not view.legend.entries[0].isVisible()
    assert view.legend.geometry().bottom() <= view.canvas.height()
