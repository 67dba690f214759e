"""What the shape table offers: values that suit an input, and whether sizes for targets are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_studio.gui.ops.precision_offers import chosen_reports
from ace_studio.gui.panels.shapes.rows import VALUE_SOURCES
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import InputFinding
from ace_studio.session.document import Document
from ace_studio.session.recipe_paths import relative_to

_EMBEDDING = "aten.embedding.default"


def wants_sizes(document: Document) -> bool:
    """Whether a chosen target is built for a range of sizes."""
    chosen = document.recipe.targets
    names = {*chosen.names, *(one.name for one in chosen_reports(document))}
    return bool(chosen.sizes) or any(TARGET_ROWS[name].is_built_for_sizes for name in names if name in TARGET_ROWS)


def offers(document: Document) -> dict[str, list[tuple[str, str]]]:
    """Input -> values that suit it: of its embedding, of the file's own description, and of caught calls."""
    found: dict[str, list[tuple[str, str]]] = {}
    known = vocabularies(document.graph, document.capture.inputs if document.capture else ())
    for name, entries in known.items():
        found[name] = [(f"random 0..{entries - 1}", f"{name} is an index into {entries:,} rows of an embedding")]
    described = document.file.inputs if document.file else ()
    caught = document.caught.rows if document.caught else ()
    for rows, why in ((described[:1], "As the file describes it"), (caught, "A call that was caught")):
        for each in rows:
            for name, spec in each.items():
                own = found.setdefault(name, [])
                values = relative_to(Path(spec.values), Path(document.folder)) if rows is caught else spec.values
                if values not in [text for text, _ in own] and values not in [text for text, _ in VALUE_SOURCES]:
                    own.append((values, why))
    return found


def vocabularies(graph: GraphTable | None, findings: Sequence[InputFinding]) -> dict[str, int]:
    """Input -> rows of the embedding that it indexes, where the graph says so."""
    if graph is None or not graph.weights:
        return {}
    inputs = [row for row, kind in enumerate(graph.kind) if kind is OpKind.INPUT and graph.dtype[row]]
    name_of = {row: finding.name for row, finding in zip(inputs, findings, strict=False)}
    found = {}
    for source, target in zip(graph.edge_source, graph.edge_target, strict=True):
        if graph.op[target] == _EMBEDDING and source in name_of and (weight := graph.weights[target]):
            found[name_of[source]] = int(weight.split()[1].partition("x")[0])
    return found
