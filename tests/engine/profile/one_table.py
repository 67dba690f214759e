"""A small graph as a table."""

from ace_studio.records.graph import GraphTable, OpKind

TABLE = GraphTable(
    op_id=("x", "conv", "relu", "view", "linear", "out"),
    kind=(OpKind.INPUT, OpKind.OP, OpKind.OP, OpKind.OP, OpKind.OP, OpKind.OUTPUT),
    op=("input", "aten.conv2d.default", "aten.relu.default", "aten.view.default", "aten.linear.default", "output"),
    module=("",) * 6,
    shape=("",) * 6,
    dtype=("float32",) * 6,
    device=("cpu",) * 6,
    file=(-1,) * 6,
    line=(0,) * 6,
    flops=(0, 8_000, 100, 0, 400, 0),
    weight_bytes=(0, 1_000, 0, 0, 40_000, 0),
    output_bytes=(200, 400, 400, 400, 40, 40),
    edge_source=(0, 1, 2, 3, 4),
    edge_target=(1, 2, 3, 4, 5),
)
