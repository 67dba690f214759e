"""Tooltips of ops, blocks and breaks."""

from __future__ import annotations

from html import escape
from pathlib import PurePath

from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.style.language import tr
from ace_studio.gui.words.formatting import bytes_text, count_text
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
    return f"Break {seam.number or ''}: {about.reason}", [
        ("line", seam.place),
        ("code", about.code.strip()),
        ("module", about.module),
        ("met", f"{about.count} times" if about.count > 1 else ""),
        (
            "costs",
            tr("{ops_left_eager} ops run eagerly", ops_left_eager=about.ops_left_eager) if about.ops_left_eager else "",
        ),
        ("hint", about.hint),
    ]


def _op_facts(picture: Picture, row: int) -> tuple[str, list[tuple[str, str]]]:
    table = picture.table
    category = int(picture.category[row])
    file = table.file[row]
    line = f"{PurePath(table.files[file]).name}:{table.line[row]}" if 0 <= file < len(table.files) else ""
    coloured = picture.colouring.categories[category] if category >= 0 else ""
    return table.op_id[row], [
        ("operator", table.op[row]),
        ("became", picture.note_of(row)),
        ("module", table.module[row]),
        ("shape", table.shape[row]),
        ("type", table.dtype[row]),
        ("device", table.device[row]),
        ("computes", count_text(table.flops[row], "FLOP") if table.flops[row] else ""),
        ("weights", bytes_text(table.weight_bytes[row]) if table.weight_bytes[row] else ""),
        ("result", bytes_text(table.output_bytes[row]) if table.output_bytes[row] else ""),
        ("source", line),
        (escape(picture.colouring.label), coloured),
    ]


def _block_facts(picture: Picture, block: int) -> tuple[str, list[tuple[str, str]]]:
    tree, at = picture.tree, block - picture.tree.root
    rows = picture.rows_inside(block)
    repeats = tree.repeats[at]
    subgraph = picture.partial.subgraph(block)
    error = subgraph.error if subgraph is not None else None
    return tree.paths[at] or picture.table.name, [
        ("class", tree.types[at]),
        (
            "subgraph",
            f"{subgraph.name}, called {subgraph.calls} time{'' if subgraph.calls == 1 else 's'}" if subgraph else "",
        ),
        (tr("stays eager"), " ".join(part for part in (error.what, error.why) if part) if error else ""),
        ("identical", f"{repeats} layers" if repeats else ""),
        ("ops", f"{int(tree.ops_inside[block]):,}"),
        ("computes", _total(picture.table, rows.tolist(), "flops", "FLOP")),
        ("weights", _total(picture.table, rows.tolist(), "weight_bytes", "B")),
    ]


def _total(table: GraphTable, rows: list[int], column: str, unit: str) -> str:
    values: tuple[int, ...] = getattr(table, column)
    total = sum(values[row] for row in rows)
    return count_text(total, unit) if total else ""
