"""Exports the captured graph as an fp32 ONNX model and maps every node to the ops that it came from.

The model is exported once per job and shared through ``LoweringJob.shared``, so that a plan means the same nodes in
ONNX Runtime and in OpenVINO.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument
from torch.utils import _pytree as pytree

from ace_studio.engine.examples.leaves import path_keys
from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.flow.module_state import STATE_REMEDY, changes_buffers
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.compared import alike_or_before
from ace_studio.engine.targets.onnx.pieces import pieces_as_slices
from ace_studio.engine.targets.onnx.products import store_transposed
from ace_studio.engine.targets.shared.kernels import GraphStep, adopt_orphans, covered_steps, heavy_ops, owners_of
from ace_studio.engine.targets.shared.support import op_place
from ace_studio.engine.torch_private.adaptive_pools import adaptive_pools_of_any_size
from ace_studio.engine.torch_private.exporting import results_in_a_list, sizes_of_one_are_ordinary
from ace_studio.engine.torch_private.functional import written_buffers
from ace_studio.engine.torch_private.onnx import (
    constants_compared_exactly,
    onnx_translations,
    operators_found_once,
    registry_made_once,
)
from ace_studio.engine.torch_private.recurrent_layers import recurrent_layers_kept_whole
from ace_studio.engine.torch_private.symbols import short_sizes
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import RECURRENT_LAYERS, operator_name

OPSET = 20
"""High enough for LayerNormalization, the reductions that the exporter writes, and Gelu as one node."""
MAX_PROTO_BYTES = 2**31 - 2**20
"""A protobuf message cannot be larger than 2 GiB."""
SHARED_KEY = "onnx_program"
"""Where `LoweringJob.shared` has the program."""
_MARK = "ace-op:"
_MARK_KEY = "pkg.torch.onnx.stack_trace"


@dataclass(frozen=True)
class OnnxProgram:
    """An ONNX model, and the ops that each of its nodes came from."""

    model: Any
    """``onnx.ModelProto``, fp32, constants folded, batch norms folded into convolutions. Not to be changed: copy it."""
    input_names: tuple[str, ...]
    """One per tensor leaf of the example, in order; a leaf the graph never reads has a name but may have no input."""
    owners: Mapping[str, tuple[str, ...]]
    """Node name -> ids of its ops, the main one first; empty if they are not known."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """Op id -> why no node computes it."""

    def steps(self) -> list[GraphStep]:
        """The nodes as steps."""
        return graph_steps(self.model)

    def nodes_of(self, op_ids: frozenset[str]) -> list[str]:
        """Names of the nodes whose main op is one of these."""
        return [name for name, ids in self.owners.items() if ids and ids[0] in op_ids]


def graph_steps(model: Any) -> list[GraphStep]:
    """The nodes of a model's graph as steps."""
    return [
        GraphStep(name=node.name, inputs=tuple(filter(None, node.input)), outputs=tuple(filter(None, node.output)))
        for node in model.graph.node
    ]


def onnx_program_of(job: LoweringJob) -> OnnxProgram:
    """The job's ONNX model, exported at the first call.

    Raises: AceError(UNSUPPORTED) with the op and the user's line if the exporter cannot translate it.
    """
    if SHARED_KEY not in job.shared:
        job.reporter.advance(None, "exporting to ONNX")
    return job.once(SHARED_KEY, lambda: export_onnx(job.captured))


def export_onnx(captured: CapturedModel) -> OnnxProgram:
    """Export a captured graph to ONNX.

    Raises: AceError(UNSUPPORTED) if an op has no ONNX form, the model keeps state, an input or output is complex, or
        the model is too large for a message.
    """
    _refuse_state(captured)
    _refuse_complex_border(captured.program)
    import onnx_ir

    leaves = list(captured.program.graph.output_node().args[0])
    is_computed = [isinstance(leaf, torch.fx.Node) for leaf in leaves]
    names = _output_names(captured.program, leaves)
    if not any(is_computed):
        raise _unsupported("The model returns no tensor", "there is nothing for a runtime to compute")
    with (
        _marked(captured.program), results_in_a_list(captured.program), recurrent_layers_kept_whole(),
        adaptive_pools_of_any_size(), sizes_of_one_are_ordinary(), short_sizes(), registry_made_once(),
        operators_found_once(), torch.no_grad(), hushed() as said,
    ):  # fmt: skip
        try:
            exported = torch.onnx.export(
                captured.program, args=(), dynamo=True, verbose=False, optimize=False, opset_version=OPSET,
                custom_translation_table=dict(onnx_translations().own),
            )  # fmt: skip
        except Exception as error:  # border: translating may run the user's own operators
            raise _export_problem(captured, error, said.getvalue()) from error
        if exported is None:
            raise _unsupported("The exporter gave no ONNX model", "it returned nothing")
        _drop_stand_ins(exported.model.graph, is_computed)
        pieces_as_slices(exported.model.graph)
        _separate_results(exported.model.graph)
        _name_interface(exported.model.graph, captured, names)
        graph_inputs = [str(value.name) for value in exported.model.graph.inputs]
        before, owners_before = _marked_steps(exported.model.graph)
        # Their shape function unrolls the sequence: what follows claims to have the traced length and no other.
        if any(operator_name(op) in RECURRENT_LAYERS for op in set(captured.table.op)):
            _forget_shapes(exported.model.graph)
        plain = exported.model.clone()
        with constants_compared_exactly():
            exported.optimize()
        for graph in (plain.graph, exported.model.graph):
            _rename_dims(graph)
        _refuse_too_large(exported.model.graph)
        feed = dict(zip(_input_names(captured), captured.example.tensors(), strict=True))
        model = alike_or_before(exported.model_proto, onnx_ir.to_proto(plain), [feed])
    _drop_notes(model)
    store_transposed(model)
    name_nodes(model)
    covered = covered_steps(graph_steps(model), before, inputs=graph_inputs)
    owners = owners_of(covered, owners_before, heavy_ops(captured.table))
    adopt_orphans(graph_steps(model), owners)
    return OnnxProgram(
        model=model, input_names=_input_names(captured), owners=owners, folded=folded_ops(captured.table, owners)
    )


def _refuse_state(captured: CapturedModel) -> None:
    if changed := written_buffers(captured.program):
        raise _unsupported(
            changes_buffers(changed),
            "an ONNX model is a function: it has no state that outlives a call",
            remedy=STATE_REMEDY,
        )


def _refuse_complex_border(program: torch.export.ExportedProgram) -> None:
    """Inside the graph the exporter writes complex values as pairs; at its border the caller would meet the pairs."""
    names = set(tensor_placeholders(program))
    inputs = [node for node in program.graph.nodes if node.name in names]
    for what, nodes in (("takes", inputs), ("returns", program.graph.output_node().all_input_nodes)):
        if any(isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].is_complex() for node in nodes):
            raise _unsupported(
                f"The model {what} complex numbers",
                "the inputs and outputs of an ONNX model are read by runtimes that have no complex numbers",
                remedy="Let forward take or return pairs of real numbers: torch.view_as_complex, torch.view_as_real.",
            )


@contextlib.contextmanager
def _marked(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Write each op's id into its stack trace, and replace constant results by tensors, while the block runs.

    The exporter keeps stack traces through decompositions, but not the names of nodes: after an LSTM cell is
    decomposed, ``sigmoid`` is another op.
    """
    nodes = list(program.graph.nodes)
    traces = [node.meta.get("stack_trace") for node in nodes]
    output = nodes[-1]
    results, specs = output.args, program.graph_signature.output_specs
    try:
        for node in nodes:
            node.meta["stack_trace"] = _MARK + node.name
        output.args = (
            tuple(_with_stand_ins(results[0], [leaf for leaf in results[0] if isinstance(leaf, torch.fx.Node)])),
        )
        program.graph_signature.output_specs = list(
            _with_stand_ins(specs, [spec for spec in specs if not isinstance(spec.arg, ConstantArgument)])
        )
        yield
    finally:
        output.args = results
        program.graph_signature.output_specs = specs
        for node, trace in zip(nodes, traces, strict=True):
            if trace is None:
                del node.meta["stack_trace"]
            else:
                node.meta["stack_trace"] = trace


def _with_stand_ins(leaves: Sequence[Any], computed: Sequence[Any]) -> Iterator[Any]:
    """The results, with the first computed one in place of each constant: the exporter cannot give constants back."""
    known = {id(leaf) for leaf in computed}
    return (leaf if id(leaf) in known else computed[0] for leaf in leaves)


def _input_names(captured: CapturedModel) -> tuple[str, ...]:
    return tuple(found.name for found in captured.inputs)


def _drop_stand_ins(graph: Any, is_computed: Sequence[bool]) -> None:
    for index in reversed(range(len(is_computed))):
        if not is_computed[index]:
            graph.outputs.pop(index)


def _separate_results(graph: Any) -> None:
    """Copy each result that is also an input, an initializer or another result."""
    import onnx_ir

    seen = {id(value) for value in graph.inputs} | {id(value) for value in graph.initializers.values()}
    for index, value in enumerate(list(graph.outputs)):
        if id(value) in seen:
            copy = onnx_ir.node("Identity", inputs=[value])
            copy.outputs[0].name = f"{value.name}.result_{index}"
            copy.outputs[0].type, copy.outputs[0].shape = value.type, value.shape
            graph.append(copy)
            graph.outputs[index] = copy.outputs[0]
        seen.add(id(value))


def _name_interface(graph: Any, captured: CapturedModel, output_names: Sequence[str]) -> None:
    """Rename inputs and outputs as the user knows them; an inner value with such a name is renamed."""
    wanted = dict(zip(tensor_placeholders(captured.program), _input_names(captured), strict=False))
    new_names = {id(value): wanted.get(value.name, value.name) for value in graph.inputs}
    outputs = list(graph.outputs)
    for value, name in zip(outputs, output_names, strict=True):
        new_names.setdefault(id(value), name)
    taken = set(new_names.values())
    inside = [value for node in graph for value in node.outputs]
    for value in [*inside, *graph.initializers.values()]:
        if value.name in taken and id(value) not in new_names:
            value.name = f"{value.name}.inner"
    for value in [*graph.inputs, *outputs]:
        value.name = new_names[id(value)]


def tensor_placeholders(program: torch.export.ExportedProgram) -> list[str]:
    """Names of the placeholders that stand for tensors of the call, in order."""
    user_inputs = set(program.graph_signature.user_inputs)
    return [
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in user_inputs and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def _output_names(program: torch.export.ExportedProgram, leaves: Sequence[Any]) -> list[str]:
    """A name per tensor of the result: its path in the containers, or ``output`` for a single tensor."""
    spec = program.call_spec.out_spec
    names = ["output"] * len(leaves)
    if spec is not None and spec.num_leaves == len(leaves):
        values = [leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
        paths = pytree.tree_leaves_with_path(pytree.tree_unflatten(values, spec))  # a container may ask for dtypes
        names = [_path_name(path) for path, _ in paths]
    names = [name for name, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.fx.Node)]
    return [name if names.count(name) == 1 else f"{name}_{index}" for index, name in enumerate(names)]


def _path_name(path: Sequence[Any]) -> str:
    text = ".".join(path_keys(path))
    return text if text and not text[0].isdigit() else f"output_{text}".rstrip("_")


def _marked_steps(graph: Any) -> tuple[list[GraphStep], dict[str, tuple[str, ...]]]:
    """The exported nodes before any optimization, and the op id that each one was marked with."""
    steps: list[GraphStep] = []
    owners: dict[str, tuple[str, ...]] = {}
    for index, node in enumerate(graph):
        node.name = node.name or f"node_{index}"
        inputs = tuple(value.name for value in node.inputs if value is not None)
        steps.append(GraphStep(name=node.name, inputs=inputs, outputs=tuple(value.name for value in node.outputs)))
        trace = node.metadata_props.get(_MARK_KEY, "")
        owners[node.name] = (trace.removeprefix(_MARK),) if trace.startswith(_MARK) else ()
    return steps, owners


def _drop_notes(model: Any) -> None:
    """Drop the exporter's metadata: it takes up to a kilobyte a node, and quotes the user's code."""
    graph = model.graph
    for one in (model, graph, *graph.node, *graph.value_info, *graph.initializer, *graph.input, *graph.output):
        del one.metadata_props[:]
    for function in model.functions:
        for node in (function, *function.node):
            del node.metadata_props[:]


def _forget_shapes(graph: Any) -> None:
    """Drop the traced shapes of inner values, which the optimizer would otherwise write into reshapes as constants."""
    for node in graph:
        for value in node.outputs:
            value.shape = None


def _rename_dims(graph: Any) -> None:
    """Rename symbols such as ``s77`` to the input and dimension that they stand for, such as ``x_0``."""
    import onnx_ir

    names: dict[str, str] = {}
    for value in graph.inputs:
        for index, dim in enumerate(value.shape):
            text, name = getattr(dim, "value", None), re.sub(r"\W", "_", f"{value.name}_{index}")
            if isinstance(text, str) and text.isidentifier() and name not in names.values():
                names.setdefault(text, name)
    if not names:
        return
    pattern = re.compile(r"\b(" + "|".join(re.escape(symbol) for symbol in names) + r")\b")
    values = [*graph.inputs, *(value for node in graph for value in node.outputs)]
    for value in values:
        texts = [getattr(dim, "value", dim) for dim in value.shape or ()]
        if any(isinstance(text, str) for text in texts):  # a new shape: some are frozen, and shared
            value.shape = onnx_ir.Shape(
                [pattern.sub(lambda match: names[match[0]], text) if isinstance(text, str) else text for text in texts]
            )


def _refuse_too_large(graph: Any) -> None:
    weight_bytes = sum(
        value.const_value.nbytes for value in graph.initializers.values() if value.const_value is not None
    )
    if weight_bytes > MAX_PROTO_BYTES:
        raise _unsupported(
            f"The weights take {weight_bytes / 1e9:.1f} GB",
            "an ONNX model in one message holds at most 2 GiB; weights in a file beside it are not written yet",
        )


def name_nodes(model: Any) -> None:
    """Give every node a unique name: runtimes and quantizers address nodes by name."""
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            node.name = f"node_{node.op_type}_{index}_"
        seen.add(node.name)


def folded_ops(table: GraphTable, owners: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Op id -> why no node is left, for the ops that the optimizer removed."""
    alive = {op_id for ids in owners.values() for op_id in ids}
    gone = [table.op_id[row] for row in table.op_rows() if table.op_id[row] not in alive]
    return dict.fromkeys(gone, "computed while building, or had nothing to compute; no ONNX node is left of it")


def _unsupported(
    what: str, why: str, *, remedy: str = "Choose a torch target for this model.", where: str = ""
) -> AceError:
    return AceError.of(ErrorCode.UNSUPPORTED, what, why=why, remedy=remedy, where=where)


def _export_problem(captured: CapturedModel, error: Exception, said: str) -> AceError:
    chain = _causes(error)
    text = "\n".join(str(cause) for cause in chain)
    op_id = _blamed_op(captured, text)
    table = captured.table
    subject = f"{table.op[table.op_id.index(op_id)]} ({op_id})" if op_id else "this graph"
    return AceError.of(
        ErrorCode.UNSUPPORTED,
        f"The ONNX exporter cannot translate {subject}",
        why=_first_line(chain[-1]),
        remedy="Use a torch target for this model, or write the op with others that ONNX has.",
        where=op_place(table, op_id) if op_id else "",
        details=re.sub(r"\x1b\[[0-9;]*m", "", f"{said}\n{text}")[-20_000:],
    )


def _causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    return chain


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _blamed_op(captured: CapturedModel, text: str) -> str:
    """The op id in an exporter's message: by our mark, by the printed node, or by the name of the operator."""
    table = captured.table
    ids = {table.op_id[row] for row in table.op_rows()}
    for pattern in (re.escape(_MARK) + r"(\w+)", r"%(\w+) : \[num_users"):
        for match in re.finditer(pattern, text):
            if match[1] in ids:
                return match[1]
    # A decomposition may have turned aten.linalg_svd into aten._linalg_svd.
    named = {match[1].strip("_") for match in re.finditer(r"\baten(?:\.|::)(\w+)", text)}
    for row in table.op_rows():
        if table.op[row].startswith("aten.") and operator_name(table.op[row]).strip("_") in named:
            return table.op_id[row]
    return ""
