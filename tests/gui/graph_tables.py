"""Graph tables for the tests of the graph view, made by hand or drawn by hypothesis."""

import random

from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import CaptureReport, GraphBreak, SubgraphKind, SubgraphReport


def table_of(rows, *, edges=(), types=None, name="Net"):
    """A table from (op id, operator, module path) triples; operators ``input`` and ``output`` are of these kinds."""
    seen = {}
    for _, _, module in rows:
        parts = module.split(".") if module else []
        seen |= {".".join(parts[:end]): None for end in range(1, len(parts) + 1)}
    paths = tuple(seen)
    kinds = {"input": OpKind.INPUT, "output": OpKind.OUTPUT}
    count = len(rows)
    known = types or {}
    return GraphTable(
        op_id=tuple(op_id for op_id, _, _ in rows),
        kind=tuple(kinds.get(op, OpKind.OP) for _, op, _ in rows),
        op=tuple(op for _, op, _ in rows),
        module=tuple(module for _, _, module in rows),
        shape=("1x8x4x4",) * count,
        dtype=tuple("int64" if op == "input" else "float32" for _, op, _ in rows),
        device=("cpu",) * count,
        file=(0,) * count,
        line=tuple(range(1, count + 1)),
        flops=tuple(1000 * row for row in range(count)),
        weight_bytes=(0,) * count,
        output_bytes=(512,) * count,
        edge_source=tuple(source for source, _ in edges),
        edge_target=tuple(target for _, target in edges),
        files=("/models/net.py",),
        module_paths=paths,
        module_types=tuple(known.get(path, "Block") for path in paths),
        name=name,
    )


def layered_table(layers=4, *, distinct=False):
    """A stem, alike layers with a residual each, and a mask that every layer reads."""
    rows = [("x", "input", ""), ("mask", "input", ""), ("stem_linear", "aten.linear.default", "stem")]
    rows.append(("stem_norm", "aten.layer_norm.default", "stem"))
    edges = [(0, 2), (2, 3)]
    last = 3
    for layer in range(layers):
        path = f"layers.{layer}"
        at = len(rows)
        second = "aten.gelu.default" if not distinct else f"aten.act{layer}.default"
        rows += [
            (f"linear_{layer}", "aten.linear.default", f"{path}.mlp"),
            (f"act_{layer}", second, f"{path}.mlp"),
            (f"add_{layer}", "aten.add.Tensor", path),
        ]
        edges += [(last, at), (at, at + 1), (at + 1, at + 2), (last, at + 2), (1, at + 2)]
        last = at + 2
    rows.append(("output", "output", ""))
    edges.append((last, len(rows) - 1))
    return table_of(rows, edges=edges)


def large_table(rows=10_000, *, seed=0):
    """Blocks of 25 ops in stages of 40 blocks."""
    rng = random.Random(seed)
    names = ("conv2d", "add", "relu", "linear", "mul", "view", "permute", "layer_norm")
    listed, edges = [("x", "input", "")], []
    previous = 0
    while len(listed) < rows - 1:
        block = (len(listed) - 1) // 25
        path = f"stage{block // 40}.block.{block}"
        local = [previous]
        for step in range(25):
            op = rng.choice(names)
            at = len(listed)
            readers = {local[-1]} | ({rng.choice(local[-6:])} if step % 3 == 0 else set())
            edges += [(source, at) for source in sorted(readers)]
            listed.append((f"{op}_{at}", f"aten.{op}.default", path if step % 5 else f"{path}.sub{step // 5}"))
            local.append(at)
        previous = local[-1]
    listed.append(("output", "output", ""))
    edges.append((previous, len(listed) - 1))
    return table_of(listed, edges=edges)


@st.composite
def tables(draw, max_rows=40):
    """Any graph: modules in any order, called again, interleaved, so that closed blocks form cycles."""
    count = draw(st.integers(1, max_rows))
    part = st.sampled_from(["a", "b", "c", "0", "1", "2", "b@1"])
    paths = draw(st.lists(st.lists(part, max_size=4).map(".".join), min_size=1, max_size=6))
    ops = st.sampled_from(["aten.add.Tensor", "aten.conv2d.default", "aten.relu.default"])
    rows = [(f"op_{row}", draw(ops), draw(st.sampled_from(paths))) for row in range(count)]
    edges = set()
    for row in range(1, count):
        edges |= {(draw(st.integers(0, row - 1)), row) for _ in range(draw(st.integers(0, 3)))}
    kind = st.sampled_from(["Block", "ModuleList", ""])
    types = {path: draw(kind) for _, _, module in rows for path in [module] if path}
    return table_of(rows, edges=sorted(edges), types=types)


REASONS = (
    "a branch depends on a value of a tensor",
    "the code calls print(), which cannot be part of a graph",
    "a number is taken out of a tensor with .item()",
)


def _eager_problem(subgraph):
    return Problem(
        code=ErrorCode.WRONG_CAPTURE,
        what=f"p{subgraph} does not match eager",
        why="it draws random numbers",
        remedy="it runs as it is",
        where=f"/models/net.py:{5 + subgraph}",
    )


def partial_capture(subgraphs=4, *, ops=6, eager=(), lines=None, layers=0):
    """A graph in subgraphs with a break between each two, and the report that goes with it.

    Args:
        subgraphs: How many.
        ops: Ops in each subgraph.
        eager: Indices of subgraphs that stayed eager.
        lines: Line of each break; equal lines are one break met several times.
        layers: So many alike modules inside every subgraph; 0 for two different ones.
    """
    table_rows, edges, subgraphs_of, last = [("x", "input", "")], [], [-1], 0
    lines = lines or tuple(10 + 3 * at for at in range(subgraphs - 1))
    for subgraph in range(subgraphs):
        for at in range(ops):
            name = ("linear", "relu", "layer_norm")[at % 3]
            module = f"stage{subgraph}.{f'layers.{at * layers // ops}' if layers else 'ab'[at * 2 // ops]}"
            table_rows.append((f"p{subgraph}_{name}_{at}", f"aten.{name}.default", module))
            subgraphs_of.append(subgraph)
            edges.append((last, len(table_rows) - 1))
            last = len(table_rows) - 1
        if subgraph < subgraphs - 1:
            table_rows.append((f"break_{subgraph}", "graph break", f"stage{subgraph}"))
            subgraphs_of.append(-1)
            edges.append((last, len(table_rows) - 1))
            last = len(table_rows) - 1
    table_rows.append(("output", "output", ""))
    subgraphs_of.append(-1)
    edges.append((last, len(table_rows) - 1))
    table = table_of(table_rows, edges=edges)
    kinds = tuple(OpKind.BREAK if op == "graph break" else kind for op, kind in zip(table.op, table.kind, strict=True))
    rows = [row for row, kind in enumerate(kinds) if kind is OpKind.BREAK]
    line = list(table.line)
    for at, row in enumerate(rows):
        line[row] = lines[at]
    table = replace(table, kind=kinds, piece=tuple(subgraphs_of), line=tuple(line))
    first = dict(reversed(list(zip(lines, rows, strict=True))))
    breaks = tuple(
        GraphBreak(
            file="/models/net.py",
            line=where,
            reason=REASONS[at % len(REASONS)],
            code="if scores.max() > self.limit:",
            count=lines.count(where),
            ops_left_eager=2 + at,
            hint="use torch.where, which computes both sides",
            id=table.op_id[first[where]],
            module=f"stage{at}",
            details="torch._dynamo.exc.Unsupported: Data-dependent branching",
        )
        for at, where in enumerate(dict.fromkeys(lines))
    )
    reports = tuple(
        SubgraphReport(
            name=f"p{at}",
            kind=SubgraphKind.FRAME if at % 3 else SubgraphKind.MODULE,
            module=f"stage{at}",
            ops=ops,
            error=_eager_problem(at) if at in eager else None,
        )
        for at in range(subgraphs)
    )  # fmt: skip
    capture = CaptureReport(
        rung="partial", ops=subgraphs * ops, seconds=2.0, graph_breaks=breaks, pieces=reports,
        ops_left_eager=sum(one.ops_left_eager for one in breaks),
    )  # fmt: skip
    return table, capture


def without_breaks(table, capture):
    """The same subgraphs with nothing between them and all of one module, as when every submodule is captured alone."""
    rows = [row for row, kind in enumerate(table.kind) if kind is not OpKind.BREAK]
    place = {row: at for at, row in enumerate(rows)}
    columns = ("op_id", "kind", "op", "shape", "dtype", "device", "file", "line", "flops", "weight_bytes",
               "output_bytes", "piece")  # fmt: skip
    kept = {name: tuple(getattr(table, name)[row] for row in rows) for name in columns}
    links = [pair for pair in zip(table.edge_source, table.edge_target, strict=True) if set(pair) <= set(place)]
    whole = replace(
        table,
        **kept,
        module=("same",) * len(rows),
        edge_source=tuple(place[source] for source, _ in links),
        edge_target=tuple(place[to] for _, to in links),
    )
    return whole, replace(capture, graph_breaks=())
