"""Compiles a graph with Inductor, whose names are all private."""

import copy
import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.adaptive_pools import with_free_pools
from ace_studio.engine.torch_private.functional import written_nodes
from ace_studio.engine.torch_private.operators import register_quantized_ops, result_dtype
from ace_studio.engine.torch_private.recurrent_layers import (
    LAYERS_IN_KERNELS,
    hide_layers,
    recurrent_layers_kept_whole,
    show_layers,
)
from ace_studio.engine.torch_private.symbols import short_sizes
from ace_studio.records.safe_file import native_stream


@dataclass(frozen=True)
class CompiledNode:
    """One node of a compiled graph."""

    target: str
    """What it calls, such as ``onednn.qconv_pointwise.default``."""
    origins: tuple[str, ...]
    """Names of the nodes of the original graph that it computes."""
    dtype: torch.dtype | None
    """Element type of its (first) result, None if it gives no tensor."""


def compile_frozen(
    graph_module: torch.fx.GraphModule, *, before_folding: Callable[[torch.fx.GraphModule], object]
) -> tuple[Callable[..., Sequence[Any]], list[CompiledNode]]:
    """Compile a graph over flat tensors with Inductor, weights frozen in, once for all sizes of its symbols.

    The graph goes to Inductor directly, without Dynamo: its nodes keep their names, nothing is guarded and nothing is
    compiled a second time. The generated code asserts fixed sizes at each call, and the strides of contiguous tensors,
    whatever the layout of the traced example was.

    ``before_folding`` changes Inductor's own graph after weights are marked for packing, and before they are packed.

    Returns: The compiled function, and the nodes that code was generated for.
    """
    # Importing and running Inductor uses what torch itself has deprecated; nobody here can change it.
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        return _compile_frozen(graph_module, before_folding)


@contextmanager
def _after_freezing_passes(change: Callable[[torch.fx.GraphModule], object]) -> Iterator[None]:
    """Let Inductor call ``change`` after its freezing passes, for which it has no setting (torch 2.11 to 2.13)."""
    freezing = importlib.import_module("torch._inductor.freezing")
    passes: Any = getattr(freezing, "freezing_passes", None)  # None if a release freezes otherwise: slower, not wrong

    def and_change(frozen: torch.fx.GraphModule, *arguments: Any) -> None:
        passes(frozen, *arguments)
        change(frozen)

    with replaced_attribute(freezing, "freezing_passes", and_change) if passes else nullcontext():
        yield


@contextmanager
def _one_post_op_per_product() -> Iterator[None]:
    """Let Inductor leave an addition behind a product that a ReLU was already fused into (torch 2.13).

    Its pattern for 8-bit linear layers with an addition matches them too, and its handler then only asserts.
    """
    entry: Any = importlib.import_module("torch._inductor.pattern_matcher").GraphPatternEntry
    fuse = entry.apply

    def apply(self: Any, match: Any, *arguments: Any) -> None:
        if match.kwargs.get("postop_name", "none") == "none":
            fuse(self, match, *arguments)

    with replaced_attribute(entry, "apply", apply):
        yield


@contextmanager
def _eight_bit_layers() -> Iterator[None]:
    """Let Inductor have its patterns of 8-bit layers, and take those that read transposed tensors of dynamic sizes.

    An LSTM with ``batch_first`` gives such a tensor. The check of that pattern makes a ``torch.Size`` of the nodes that
    compute the sizes, which raises; here it gets their values. Patterns and checks are made once, for the first graph.
    """
    patterns: Any = importlib.import_module("torch._inductor.fx_passes.quantization")
    register: Callable[[], object] = bool  # does nothing: torch itself registers its patterns
    if not hasattr(patterns, _CHECK):  # torch 2.15: torchao has them now. Without it no graph is quantized either
        with suppress(ImportError):
            patterns = importlib.import_module("torchao.quantization.pt2e.inductor_passes.x86")
            register = patterns._register_quantization_weight_pack_pass
    make: Any = getattr(patterns, _CHECK, None)

    def make_check(*kind: Any) -> Callable[[Any], bool]:
        check = make(*kind)

        def check_values(match: Any) -> bool:
            sizes = {key: match.kwargs[key] for key in ("act_expand_size", "wgt_expand_size") if key in match.kwargs}
            values = {key: [getattr(one, "meta", {}).get("val", one) for one in size] for key, size in sizes.items()}
            with replaced_attribute(match, "kwargs", match.kwargs | values):
                return bool(check(match))

        return check_values

    with replaced_attribute(patterns, _CHECK, make_check) if make else nullcontext():
        register()
        yield


_CHECK = "_is_valid_dequant_linear_pattern"


@contextmanager
def _metadata_of_lowered_layers_kept() -> Iterator[None]:
    """Let Inductor keep the metadata of an 8-bit layer when a later pass changes the nodes that it reads (torch 2.15).

    Writes through views are such a pass. It gives the layer a tensor of the same size, and Inductor raises because it
    cannot compute the metadata of such a layer again.
    """
    updater: Any = importlib.import_module("torch._inductor.fx_utils").FakeTensorUpdater
    update = updater.incremental_update

    def update_others(self: Any) -> Any:
        if tracked := getattr(self, "tracked_node_ids", None):  # earlier releases have none
            layers = (node for node in self.gm.graph.nodes if hasattr(node.target, "_inductor_lowering_function"))
            tracked.difference_update([id(node) for node in layers])
        return update(self)

    with replaced_attribute(updater, "incremental_update", update_others):
        yield


def _compile_frozen(
    graph_module: torch.fx.GraphModule, before_folding: Callable[[torch.fx.GraphModule], object]
) -> tuple[Callable[..., Sequence[Any]], list[CompiledNode]]:
    from torch._guards import TracingContext, tracing  # noqa: PLC0415 - this whole family takes seconds to import
    from torch._inductor.compile_fx import compile_fx  # noqa: PLC0415

    for attempts_left in reversed(range(MOST_DAMAGED + 1)):
        own = _copy_to_compile(graph_module)
        examples, mode = _fake_examples(own)
        try:
            with tracing(TracingContext(mode)), _frozen_settings(before_folding) as seen:
                function: Any = compile_fx(own, examples)
        except Exception as error:  # Inductor raises anything around the loader's message
            damaged = damaged_library(str(error))
            if damaged is None or not attempts_left:
                raise
            damaged.unlink()
        else:
            return function, seen
    raise AssertionError("the last attempt returns or raises")


MOST_DAMAGED = 4
"""Number of damaged libraries in the compiler's cache that are deleted before the error is raised."""
_DAMAGED = re.compile(
    r"(?P<path>\S+\.(?:so|dylib)): "
    r"(?:file too short|invalid ELF header|ELF load command|cannot read file data|.*truncated)"
)


def damaged_library(message: str) -> Path | None:
    """The incomplete library that a loader's message names, if it exists; None for any other message.

    A process that is killed while the C++ compiler writes leaves such a file in the cache, and torch, which checks only
    whether the file exists, would load it again and again.
    """
    found = _DAMAGED.search(message)
    path = Path(found["path"]) if found else None
    return path if path is not None and path.is_file() else None


def _copy_to_compile(graph_module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy to compile, with the buffers that the graph changes.

    Its nodes have no sources of their own, so that it is the oldest that `origins_of` finds.
    """
    stored = dict(graph_module.named_buffers(remove_duplicate=False))
    written = [stored.get(str(node.target)) for node in written_nodes(graph_module.graph) if node.op == "get_attr"]
    own = copy.deepcopy(graph_module, {id(one): one for one in written if one is not None})
    for node in own.graph.nodes:
        node.meta["from_node"] = []
    hide_layers(own.graph)
    return own


def _fake_examples(graph_module: torch.fx.GraphModule) -> tuple[list[Any], Any]:
    """The example values of the inputs, contiguous as in later calls, and their fake mode.

    The values in the graph are changed too: compiling ahead of time reads them, and its code does not check strides.
    """
    nodes = graph_module.graph.find_nodes(op="placeholder")
    examples = [node.meta["val"] for node in nodes]
    mode = next((example.fake_mode for example in examples if hasattr(example, "fake_mode")), None)
    _keep_symbols_only(getattr(mode, "shape_env", None))
    for node, example in zip(nodes, examples, strict=True):
        node.meta["val"] = _in_order(example, mode)
    return [node.meta["val"] for node in nodes], mode


def _in_order(example: Any, mode: Any) -> Any:
    """A contiguous example: a traced input may be a transposed view, and strides become fixed."""
    if mode is None or not isinstance(example, torch.Tensor):
        return example
    with mode:
        return example.new_empty(example.shape)


@contextmanager
def _frozen_settings(before_folding: Callable[[torch.fx.GraphModule], object]) -> Iterator[list[CompiledNode]]:
    """Let Inductor freeze weights and call ``before_folding``; yields a list that fills with the compiled nodes."""
    from torch._inductor import config  # noqa: PLC0415 - takes seconds

    register_quantized_ops()
    seen: list[CompiledNode] = []

    def finish(graph: torch.fx.Graph) -> None:
        show_layers(graph)
        seen.extend(_compiled_nodes(graph))

    # Inductor's graph cache is off: a hit would skip the passes that we listen to. Compiled C++ is cached all the same.
    settings = {
        "freezing": True,
        "fx_graph_cache": False,
        "post_grad_custom_post_pass": finish,
    }
    lowering: Any = importlib.import_module("torch._inductor.lowering")
    for op in LAYERS_IN_KERNELS:
        if op not in lowering.lowerings:
            lowering.make_fallback(op, warn=False, override_decomp=True)
    compiling: Any = importlib.import_module("torch._inductor.compile_fx")
    table = with_free_pools(compiling.select_decomp_table())
    with (
        config.patch(settings), _after_freezing_passes(before_folding), _one_post_op_per_product(),
        _eight_bit_layers(), _metadata_of_lowered_layers_kept(),
        replaced_attribute(compiling, "select_decomp_table", lambda: table),
        recurrent_layers_kept_whole(*LAYERS_IN_KERNELS), short_sizes(),
    ):  # fmt: skip
        yield seen


def package_frozen(
    graph_module: torch.fx.GraphModule,
    path: Path,
    *,
    before_folding: Callable[[torch.fx.GraphModule], object],
    notes: Mapping[str, str],
    ranges: Mapping[Any, Any],
) -> list[CompiledNode]:
    """Compile a graph ahead of time, as `compile_frozen` does it, into a package (``.pt2``) that needs no compiler.

    The package takes flat tensors and gives a tuple of them. Torch's thread count is written into its code.

    Args:
        graph_module: A graph over flat tensors.
        path: The package; must end in ``.pt2``.
        before_folding: As in `compile_frozen`.
        notes: Metadata of the package, which `open_package` returns.
        ranges: Symbol -> the range for which the graph was proven; the package checks it if it is asked to.

    Returns: The nodes that code was generated for.
    """
    with torch.no_grad(), hushed():  # it logs that it has no entry in C for operators of PyTorch's kernels
        from torch._inductor.compile_fx import compile_fx_aot  # noqa: PLC0415 - takes seconds
        from torch._inductor.package.package import package_aoti  # noqa: PLC0415

        own = _copy_to_compile(graph_module)
        examples, mode = _fake_examples(own)
        results = tuple(range(len(graph_module.graph.output_node().args[0])))  # type: ignore[arg-type]
        options = {
            "aot_inductor.package": True,
            "aot_inductor.serialized_in_spec": pytree.treespec_dumps(pytree.tree_structure((tuple(examples), {}))),
            "aot_inductor.serialized_out_spec": pytree.treespec_dumps(pytree.tree_structure(results)),
            "aot_inductor.metadata": dict(notes),
        }
        with _frozen_settings(before_folding) as seen, _kept_ranges(mode, ranges):
            files: Any = compile_fx_aot(own, examples, config_patches=options)
        with native_stream(path) as stream:
            package_aoti(stream, files)
    return seen


@contextmanager
def _kept_ranges(mode: Any, ranges: Mapping[Any, Any]) -> Iterator[None]:
    """Give the symbols the ranges that were proven, and keep them.

    What torch chooses for the traced sizes, such as a kernel for batches from 16 on, narrows them, and the package
    would refuse other sizes, which its code computes too.
    """
    environment = getattr(mode, "shape_env", None)
    if environment is None:
        yield
        return
    environment.var_to_range.update({one: ranges[one] for one in environment.var_to_range if one in ranges})
    with replaced_attribute(environment, "_refine_ranges", lambda _: None):
        yield


def open_package(path: Path) -> tuple[Callable[..., Sequence[Any]], dict[str, str]]:
    """Load a package of `package_frozen`: the function over flat tensors, and its notes.

    It is machine code: open only what you trust. Raises: RuntimeError if it is not there or no package.
    """
    with warnings.catch_warnings(action="ignore"):
        from torch._inductor import aoti_load_package  # noqa: PLC0415 - takes seconds

        package: Any = aoti_load_package(str(path))
    return package, dict(package.get_metadata())


def _keep_symbols_only(environment: Any) -> None:
    """Remove sizes of products of symbols, which reading a program from a file leaves among those of symbols."""
    for name in ("backed_var_to_val", "var_to_range"):
        sizes = getattr(environment, name, {})
        for expression in [one for one in sizes if not one.is_Symbol]:
            del sizes[expression]


def _compiled_nodes(graph: torch.fx.Graph) -> Iterator[CompiledNode]:
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        yield CompiledNode(_target_name(node.target), origins_of(node), result_dtype(node.meta.get("val")))


def origins_of(node: torch.fx.Node) -> tuple[str, ...]:
    """Names of the nodes of the compiled graph that ``node`` was made from.

    Some of Inductor's patterns record them only at its inputs. Torch 2.11 traces one graph more than 2.13, so the
    oldest source counts, not the latest.
    """
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if one.meta.get("from_node"):
            return tuple(dict.fromkeys(_oldest(one.meta["from_node"])))
        waiting += [before for before in one.all_input_nodes if before.op == "call_function"]
    return ()


def _oldest(sources: Sequence[Any]) -> Iterator[str]:
    for source in sources:
        yield from _oldest(source.from_node) if source.from_node else (str(source.name),)


def _target_name(target: object) -> str:
    """Name of the operator; of the fused operator for a fusion, which Inductor keeps as a closure."""
    if not isinstance(target, functools.partial):
        return str(target)
    captured = inspect.getclosurevars(target.func).nonlocals
    fused = next((captured[name] for name in ("computation_op", "fusion_op") if name in captured), None)
    return f"{fused} fused" if fused is not None else f"onednn.{target.func.__name__} fused"


@dataclass(frozen=True)
class CompilerTables:
    """The operators that the compiler decomposes and those that it writes code for."""

    decompositions: Mapping[Any, Callable[..., Any]]
    """Operators that are decomposed first -> their decomposition."""
    lowered: frozenset[Any]
    """Operators that it writes code for, or calls a library for that it knows."""

    def writes(self, target: Any) -> bool:
        """Whether it writes code for the operator itself."""
        return target in self.lowered


@functools.cache
def compiler_tables() -> CompilerTables:
    """The compiler's tables; the first call imports them, which takes seconds."""
    with warnings.catch_warnings(action="ignore"):
        lowering: Any = importlib.import_module("torch._inductor.lowering")
        decomposing: Any = importlib.import_module("torch._inductor.decomposition")
        table: Any = decomposing.select_decomp_table()
    # A fallback has a lowering too, which calls PyTorch. A pass replaces these two by code that draws random numbers.
    written = set(lowering.lowerings) - set(lowering.fallbacks)
    drawn = {torch.ops.aten.rand.default, torch.ops.aten.randn.default}
    decomposed = {op: function for op, function in table.items() if op not in LAYERS_IN_KERNELS}
    return CompilerTables(decomposed, frozenset(written | drawn))
