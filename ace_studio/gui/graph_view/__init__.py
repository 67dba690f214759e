"""The graph of a captured model: a widget to look at it, walk through it and select in it.

    view = GraphView()
    view.show_graph(table)                    # GraphTable or None; opens as many blocks as stay readable
    view.selection_changed.connect(...)       # tuple of op ids, after a gesture of the user
    view.op_activated.connect(...)            # op id, after Enter or a double-click on an op
    view.set_selection(op_ids)                # no signal, nothing scrolls
    view.reveal(op_id)                        # opens what hides the op and scrolls to it
    view.set_colouring(Colouring(...))        # planned or actual precision, device, latency ...; None: kinds of ops
    view.set_theme(LIGHT)                     # the colours of a theme
    view.search("conv dtype:float16")         # op ids; also "/regex/", "shape:1x64", "module:layer1"
    view.search_next(), view.search_previous()
    view.fit(), view.zoom_by(1.25)
    view.canvas                               # open_everything(), close_everything(), show_path(op_id, op_id)
    view.export(path)                         # .svg, .pdf or .png

Keys: arrows walk edges, Enter opens a block, Backspace closes the parent, Space fits, F frames the selection,
+ and - zoom, Esc clears. Mouse: wheel zooms at the cursor, drag pans, double-click opens or closes
in place, Ctrl-click adds, Shift-drag encircles, Ctrl-drag zooms into a box.

    colours   colours of the theme, `Colouring`, the families of ops
    picture   what is shown: arrangement, scene, categories, selection (no widget)
    surface   picture, camera, selection and the verbs on them; gestures keys menu call it
    canvas    the surface as it is drawn; painting boxes lines texts are its parts
    search    finds ops; paths finds paths between them
    minimap legend bars export   around the canvas
    view      `GraphView`, all of it together
"""

from ace_studio.gui.graph_view.colours import Colouring
from ace_studio.gui.graph_view.view import GraphView
