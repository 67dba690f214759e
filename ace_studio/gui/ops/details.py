"""Everything known of the selected ops, in groups of names and values, for a person to read and copy."""

import math
import os.path
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.ops.facts import OpFacts, op_facts, row_of_ops
from ace_studio.gui.style import number, numbers, tr
from ace_studio.gui.words.formatting import (
    bytes_text,
    count_text,
    decibel_text,
    ms_text,
    percent_text,
    plural,
    shape_text,
)
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import OpReport, Region
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.records.values import Statistics, TensorValues
from ace_studio.session.document import Document

_LISTED = 12
"""So many neighbours, operators and modules are named; the rest is counted."""


@dataclass(frozen=True)
class Detail:
    """One line."""

    name: str
    value: str
    op_id: str = ""
    """The op that the line is about, to go to it."""


@dataclass(frozen=True)
class Group:
    """A heading with its lines; at least one."""

    title: str
    lines: tuple[Detail, ...]


def details_of(document: Document) -> tuple[Group, ...]:
    """Groups about the selected op, or sums over several; empty without a selection."""
    graph = document.graph
    if graph is None or not document.selection.op_ids:
        return ()
    places = row_of_ops(graph)
    rows = [places[op_id] for op_id in document.selection.op_ids if op_id in places]
    facts = op_facts(document)
    if not rows:
        return ()
    region = _region(document, facts, graph.op_id[rows[0]])
    found = _of_op(graph, facts, rows[0], region=region) if len(rows) == 1 else _of_ops(graph, facts, rows)
    made = list(found)
    values = document.values
    if values is not None and document.selection.op_ids == (values.op_id,):
        of = tr(
            "example {at} of {examples}, {precision}",
            at=values.example + 1,
            examples=values.examples,
            precision=values.precision,
        )
        for one in values.tensors:
            lines = [Detail(name, value) for name, value in tensor_lines(one).items()]
            made.append(
                (tr("Values: {name}", name=one.name) + (f", {of}" if one.name.startswith("result") else ""), lines)
            )
        made.append((tr("Notes on values"), [Detail("", note) for note in values.notes]))
    return tuple(Group(title, kept) for title, lines in made if (kept := tuple(one for one in lines if one.value)))


def tensor_lines(found: TensorValues) -> dict[str, str]:
    """What is known of the values of a tensor, by name; empty texts for what is not."""

    def told(one: Statistics | None) -> str:
        if one is None:
            return ""
        odd = tr(", {not_finite:,} not finite", not_finite=one.not_finite) if one.not_finite else ""
        zeros = tr(", {percent} zeros", percent=percent_text(one.zeros)) if one.zeros else ""
        spread = tr("mean {mean:.3g}, std {std:.3g}", mean=one.mean, std=one.std)
        return f"{number(one.low, '.3g')} … {number(one.high, '.3g')}, {spread}{zeros}{odd}"

    def first(one: Statistics | None) -> str:
        return numbers(one.first[:_LISTED], ".4g") if one is not None else ""

    widths = sorted(high - low for low, high in found.channels)
    db = found.sqnr_db
    return {
        "SQNR": decibel_text(db) if db is not None else "",
        tr("largest difference"): number(found.largest_difference, ".3g")
        if found.largest_difference is not None
        else "",
        tr("float"): told(found.original),
        tr("compressed"): told(found.compressed),
        tr("ranges of channels"): tr("{low:.3g} … {high:.3g} wide", low=widths[0], high=widths[-1]) if widths else "",
        tr("first values"): first(found.original),
        tr("first compressed"): first(found.compressed),
        tr("counted"): tr("every {every:,}th element", every=found.every) if found.every > 1 else "",
    }


def as_text(groups: Iterable[Group]) -> str:
    """The groups as plain text, with tabs, to paste anywhere."""
    lines = ([[group.title], *(["", line.name, line.value] for line in group.lines), []] for group in groups)
    return spreadsheet_text((one for group in lines for one in group), separator="\t").rstrip("\n")


def _region(document: Document, facts: OpFacts, op_id: str) -> Region | None:
    """What a search chose from for the op, on the target of the selected run."""
    regions = document.result.regions if document.result is not None and facts.run is not None else ()
    return next((one for one in regions if facts.run and one.target == facts.run.target and op_id in one.ops), None)


def _choices(region: Region, op_id: str, planned: str) -> list[Detail]:
    """A line per precision: what it takes, gives and costs, and which was taken."""
    exact = region.choices[-1]
    lines = []
    for one in region.choices:
        saved = exact.latency_share - one.latency_share
        words = [
            tr("{time} of the original's latency", time=percent_text(one.latency_share)),
            *([tr("saves {time}", time=percent_text(saved))] if one is not exact else []),
            tr("alone {fidelity}", fidelity=decibel_text(one.sqnr_db)) if one.sqnr_db is not None else tr("exact"),
            *([bytes_text(one.size_bytes)] if one.size_bytes else []),
            *([tr("taken")] if one.precision == planned else []),
        ]
        lines.append(Detail(one.precision, ", ".join(words)))
    if not region.pays:
        lines.append(Detail("", tr("no lower precision is worthwhile here, with what conversions cost")))
    others = [other for other in region.ops if other != op_id]
    named = [Detail(tr("decides with"), other, other) for other in others[:_LISTED]]
    more = len(others) - _LISTED
    return [*lines, *named, *([Detail("", tr("and {more} more", more=more))] if more > 0 else [])]


def _of_op(graph: GraphTable, facts: OpFacts, row: int, *, region: Region | None) -> Iterator[tuple[str, list[Detail]]]:
    op_id = graph.op_id[row]
    types = dict(zip(graph.module_paths, graph.module_types, strict=True))
    kind = types.get(graph.module[row], "" if graph.module[row] else graph.name)
    path = graph.files[graph.file[row]] if 0 <= graph.file[row] < len(graph.files) else ""
    yield (
        tr("Op"),
        [
            Detail(tr("name"), op_id),
            Detail(tr("operator"), graph.op[row]),
            Detail(tr("module"), f"{graph.module[row] or tr('the model itself')}  {kind}".rstrip()),
            Detail(tr("source"), f"{path}:{graph.line[row]}" if path else ""),
        ],
    )
    yield tr("Attributes"), _pairs(graph.attributes, row, " = ")
    yield tr("Inputs"), _neighbours(graph, {row}, inwards=True)
    yield tr("Weights"), [_weight(*line.split(" ")) for line in _lines(graph.weights, row)]
    output = Detail(tr("result"), _tensor(graph, row))
    yield tr("Outputs"), [output, *(Detail(tr("read by"), one.value, one.op_id) for one in _neighbours(graph, {row}))]
    report = facts.reports.get(op_id)
    yield (
        tr("Precision"),
        [
            Detail(tr("planned"), facts.planned.get(op_id, "")),
            Detail(tr("because"), facts.planned_by.get(op_id, "")),
            Detail(tr("actual"), report.actual if report else ""),
            Detail(tr("because"), report.reason if report else ""),
            Detail(tr("became"), facts.fates[op_id].words if op_id in facts.fates else ""),
            Detail(tr("not supported by"), facts.support.get(op_id, "")),
        ],
    )
    if region is not None:
        yield tr("Choices of the search"), _choices(region, op_id, report.planned if report else "")
    yield tr("Cost"), _costs(graph, [row])
    yield tr("Selected run"), _measured(facts, op_id, report)


def _measured(facts: OpFacts, op_id: str, report: OpReport | None) -> list[Detail]:
    sensitivity = facts.sensitivity.get(op_id, report.sensitivity_db if report else None)
    found = [
        Detail(tr("sensitivity"), decibel_text(sensitivity) if sensitivity is not None else ""),
        Detail(tr("target"), facts.run.target if facts.run and report else ""),
    ]
    if report is not None:
        share = tr(", {percent} of all ops", percent=percent_text(report.share)) if report.share is not None else ""
        bound = f"{report.bound}" if report.bound else ""
        if report.ceiling_share is not None:
            bound += tr(", {percent} of what this machine can do", percent=percent_text(report.ceiling_share))
        found += [
            Detail(tr("device"), report.device),
            Detail(tr("latency"), f"{ms_text(report.latency_ms)}{share}" if report.latency_ms is not None else ""),
            Detail(tr("limited by"), bound.removeprefix(", ")),
            Detail(tr("error"), decibel_text(report.error_db) if report.error_db is not None else ""),
        ]
    return found


def _of_ops(graph: GraphTable, facts: OpFacts, rows: Sequence[int]) -> Iterator[tuple[str, list[Detail]]]:
    chosen = set(rows)
    reports = [facts.reports[graph.op_id[row]] for row in rows if graph.op_id[row] in facts.reports]
    ops = [row for row in rows if graph.kind[row] is OpKind.OP]
    yield tr("Selection"), [Detail(tr("ops"), plural(len(ops), "op")), Detail(tr("module"), _common_module(graph, ops))]
    yield tr("Inputs from outside"), _neighbours(graph, chosen, inwards=True)
    yield tr("Read by others"), [Detail(tr("read by"), one.value, one.op_id) for one in _neighbours(graph, chosen)]
    yield tr("Operators"), _counted(short_op(graph.op[row]) for row in ops)
    yield tr("Planned precision"), _counted(facts.planned.get(graph.op_id[row], "") for row in ops)
    yield tr("Actual precision"), _counted(report.actual for report in reports)
    yield tr("Cost"), _costs(graph, ops)
    timed = [report.latency_ms for report in reports if report.latency_ms is not None]
    shares = [report.share for report in reports if report.share is not None]
    worst = min((one for one in reports if one.error_db is not None), key=_error, default=None)
    taken = tr("{time} in {ops}", time=ms_text(sum(timed)), ops=plural(len(timed), "timed op"))
    largest = tr("{error} at {op}", error=decibel_text(worst.error_db), op=worst.id) if worst else ""
    yield (
        tr("Selected run"),
        [
            Detail(tr("target"), facts.run.target if facts.run and reports else ""),
            Detail(tr("latency"), taken if timed else ""),
            Detail(tr("share of time"), percent_text(sum(shares)) if shares else ""),
            Detail(tr("largest error"), largest, worst.id if worst else ""),
        ],
    )


def _error(report: OpReport) -> float:
    return report.error_db if report.error_db is not None else float("inf")


def _pairs(column: Sequence[str], row: int, between: str) -> list[Detail]:
    """The lines of a cell, each a name and a value."""
    return [Detail(*line.partition(between)[::2]) for line in _lines(column, row)]


def _lines(column: Sequence[str], row: int) -> list[str]:
    return column[row].splitlines() if column else []


def _weight(name: str, shape: str, *dtype: str) -> Detail:
    return Detail(name, "  ".join((shape_text(shape), *dtype)))


def _tensor(graph: GraphTable, row: int) -> str:
    shape = shape_text(graph.shape[row]) if graph.shape[row] else tr("scalar")
    return f"{shape}  {graph.dtype[row]}" if graph.dtype[row] else ""


def _neighbours(graph: GraphTable, rows: set[int], *, inwards: bool = False) -> list[Detail]:
    """The rows outside that these read (``inwards``), or that read these."""
    ends = (graph.edge_source, graph.edge_target) if inwards else (graph.edge_target, graph.edge_source)
    found = dict.fromkeys(there for there, here in zip(*ends, strict=True) if here in rows and there not in rows)
    named = [Detail(graph.op_id[row], _words(graph, row), graph.op_id[row]) for row in list(found)[:_LISTED]]
    if not inwards:
        named = [Detail("", f"{one.name}  {one.value}", one.op_id) for one in named]
    more = len(found) - _LISTED
    return [*named, Detail("", tr("and {more} more", more=more))] if more > 0 else named


def _words(graph: GraphTable, row: int) -> str:
    return _tensor(graph, row) or graph.op[row]


def _counted(words: Iterable[str]) -> list[Detail]:
    counts = Counter(word for word in words if word).most_common()
    named = [Detail(word, str(count)) for word, count in counts[:_LISTED]]
    more = len(counts) - _LISTED
    return [*named, Detail("", tr("and {more} more", more=more))] if more > 0 else named


def _costs(graph: GraphTable, rows: Sequence[int]) -> list[Detail]:
    def total(column: Sequence[int], text: Callable[[float], str]) -> str:
        found = sum(column[row] for row in rows)
        return text(found) if found else ""

    return [
        Detail(tr("parameters"), count_text(count) if (count := sum(parameters(graph, row) for row in rows)) else ""),
        Detail(tr("FLOPs"), total(graph.flops, count_text)),
        Detail(tr("weights"), total(graph.weight_bytes, bytes_text)),
        Detail(tr("results"), total(graph.output_bytes, bytes_text)),
    ]


def parameters(graph: GraphTable, row: int) -> int:
    """Elements of the weights that an op reads."""
    shapes = (line.split(" ")[1] for line in (graph.weights[row] if graph.weights else "").splitlines())
    return sum(math.prod(int(size) for size in shape.split("x") if size.isdigit()) for shape in shapes)


def _common_module(graph: GraphTable, rows: Sequence[int]) -> str:
    """The innermost module around all of these; empty if that is the whole model."""
    paths = {graph.module[row] for row in rows}
    return os.path.commonpath([f"/{path.replace('.', '/')}" for path in paths])[1:].replace("/", ".") if paths else ""
