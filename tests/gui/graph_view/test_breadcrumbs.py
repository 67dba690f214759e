"""The breadcrumbs: the blocks around the current node; a click goes to one."""

from tests.gui.looking import block


def test_breadcrumbs_lead_to_the_blocks_around_the_current_op(view, qtbot):
    view.reveal("act_2")
    assert view.breadcrumbs.names == ("Net", "layers", "2", "mlp", "gelu")
    with qtbot.waitSignal(view.canvas.camera_moved):
        view.breadcrumbs.block_wanted.emit(block(view, "layers"))
    assert view.canvas.current == block(view, "layers")
