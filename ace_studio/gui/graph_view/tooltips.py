"""Tooltips of ops, blocks and breaks."""

from html import escape
from pathlib import PurePath

from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.style import number, told, tr
from ace_studio.gui.words.formatting import bytes_text, count_text, plural
from ace_studio.records.graph import GraphTable


def tooltip_of(picture: Picture, node: int) -> str:
    """The tooltip of a node as rich text; every name from the model is escaped."""
    if node in picture.partial.seams:
        title, rows = _seam_facts(picture, node)
    elif node < picture.tree.root:
        title, rows = _op_facts(picture, node)
    else:
        title, rows = _block_facts(picture, node)
    cells = "".join(
        f"<tr><td style='padding-right:10px'>{name}</td><td>{escape(value)}</td></tr>" for name, value in rows if value
    )
    return f"<b>{escape(title)}</b><table>{cells}</table>"


def _seam_facts(picture: Picture, row: int) -> tuple[str, list[tuple[str, str]]]:
    seam = picture.partial.seams[row]
    about = seam.about
    return f"{tr('Break {number}', number=seam.number or '')}: {about.reason}", [
        (tr("line"), seam.place),
        (tr("code"), about.code.strip()),
        (tr("module"), about.module),
        (tr("met"), plural(about.count, "time") if about.count > 1 else ""),
        (
            tr("costs"),
            tr("{ops_left_eager} ops run eagerly", ops_left_eager=about.ops_left_eager) if about.ops_left_eager else "",
        ),
        (tr("hint"), about.hint),
    ]


def _op_facts(picture: Picture, row: int) -> tuple[str, list[tuple[str, str]]]:
    table = picture.table
    category = int(picture.category[row])
    file = table.file[row]
    line = f"{PurePath(table.files[file]).name}:{table.line[row]}" if 0 <= file < len(table.files) else ""
    coloured = picture.colouring.categories[category] if category >= 0 else ""
    return table.op_id[row], [
        (tr("operator"), table.op[row]),
        (tr("became"), picture.note_of(row)),
        (tr("module"), table.module[row]),
        (tr("shape"), table.shape[row]),
        (tr("type"), table.dtype[row]),
        (tr("device"), table.device[row]),
        (tr("computes"), count_text(table.flops[row], "FLOP") if table.flops[row] else ""),
        (tr("weights"), bytes_text(table.weight_bytes[row]) if table.weight_bytes[row] else ""),
        (tr("result"), bytes_text(table.output_bytes[row]) if table.output_bytes[row] else ""),
        (tr("source"), line),
        (escape(picture.colouring.label), coloured),
    ]


def _block_facts(picture: Picture, block: int) -> tuple[str, list[tuple[str, str]]]:
    tree, at = picture.tree, block - picture.tree.root
    rows = picture.rows_inside(block)
    repeats = tree.repeats[at]
    subgraph = picture.partial.subgraph(block)
    error = subgraph.error if subgraph is not None else None
    return tree.paths[at] or picture.table.name, [
        (tr("class"), tree.types[at]),
        (
            tr("subgraph"),
            tr("{name}, called {times}", name=subgraph.name, times=plural(subgraph.calls, "time")) if subgraph else "",
        ),
        (tr("stays eager"), " ".join(told(part) for part in (error.what, error.why) if part) if error else ""),
        (tr("identical"), plural(repeats, "layer") if repeats else ""),
        (tr("ops"), number(int(tree.ops_inside[block]), ",")),
        (tr("computes"), _total(picture.table, rows.tolist(), "flops", "FLOP")),
        (tr("weights"), _total(picture.table, rows.tolist(), "weight_bytes", "B")),
    ]


def _total(table: GraphTable, rows: list[int], column: str, unit: str) -> str:
    values: tuple[int, ...] = getattr(table, column)
    total = sum(values[row] for row in rows)
    return count_text(total, unit) if total else ""
