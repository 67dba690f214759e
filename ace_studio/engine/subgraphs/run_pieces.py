"""Runs a partially captured model: every subgraph in its place, the model's own Python between them.

This file stands alone. ACE Studio writes a copy of it beside the subgraphs that it saves, so it needs torch and the
runtime that the subgraphs were built for, and nothing else:

    from run_pieces import load
    model = load(my_module, "folder")      # my_module: the nn.Module that was captured, with its weights
    model(x)

There are two kinds of subgraphs. A *frame* is what torch's compiler finds between two places that it cannot follow: the
compiler is asked for its graphs again, and each graph that is known by its code and its weights is answered by the
subgraph. A *module* is a submodule whose forward is replaced. A call that a subgraph was not made for (another size of
a dimension that is fixed in it) runs eagerly, so that the result is always that of the model.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors.torch import load_file
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

Flat = Callable[..., Sequence[Tensor]]
"""A built subgraph: flat tensors in, a list of flat tensors out."""
Limits = tuple[tuple[int, int | None], ...]
"""Per dimension of a tensor: smallest and largest size; the largest is None if there is none."""


@dataclass(frozen=True)
class Place:
    """Where a subgraph belongs, and which calls it was made for. Positions count the values of a call."""

    name: str
    kind: str
    """``frame`` or ``module``."""
    module: str = ""
    """Dotted path of the submodule, or of the module that the frame's code belongs to."""
    graph: str = ""
    """Frame: digest of the compiler's graph."""
    weights: tuple[tuple[int, str], ...] = ()
    """Frame: position -> name of the parameter or buffer at that position."""
    tensors: tuple[int, ...] = ()
    """Positions of the tensors that the subgraph takes."""
    limits: tuple[Limits, ...] = ()
    """The sizes that they must have."""
    carried: tuple[int, ...] = ()
    """Positions of integers; each becomes the length of one more tensor after the others."""
    fixed: tuple[tuple[int, Any], ...] = ()
    """Positions of plain values that must be unchanged."""
    nesting: str = ""
    """Module: nesting of its arguments, as JSON."""
    result: str = ""
    """Module: nesting of its result, as JSON."""
    constants: tuple[tuple[int, Any], ...] = ()
    """Module: leaves of the result that are no tensors."""

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether the subgraph was made for a call with these values."""
        for position, limits in zip(self.tensors, self.limits, strict=True):
            shape = values[position].shape
            if len(shape) != len(limits):
                return False
            for size, (low, high) in zip(shape, limits, strict=True):
                if size < low or (high is not None and size > high):
                    return False
        return all(values[at] == value for at, value in self.fixed) and all(values[at] >= 0 for at in self.carried)

    def inputs(self, values: Sequence[Any]) -> list[Tensor]:
        """The inputs of the subgraph."""
        found = [values[position] for position in self.tensors]
        found += [carrier(values[position]) for position in self.carried]
        return found


def carrier(number: int) -> Tensor:
    """A tensor as long as a number, to bring the number into a graph in which only sizes may be symbols."""
    return torch.zeros(number, dtype=torch.uint8)


@dataclass(frozen=True)
class HostedSubgraph:
    """A subgraph that can be called, and its place."""

    place: Place
    function: Flat


# --- settings of torch's compiler ---

MOST_GRAPHS = 256
"""Graphs of one function that the compiler may keep: one per runner and path through the function."""
MOST_SIZES = 4096
"""Shapes of calls that a runner remembers; calls of further ones are a little slower."""


@contextmanager
def subgraph_settings() -> Iterator[None]:
    """One graph per place whatever the sizes: none is fixed by what it is on the first call, 0 and 1 included."""
    import torch._dynamo.config as settings  # noqa: PLC0415 - loading the compiler takes seconds
    from torch.fx.experimental import _config as sizes  # noqa: PLC0415 - as above

    wanted = {
        "assume_static_by_default": False,
        "automatic_dynamic_shapes": False,
        "specialize_float": True,
        "allow_rnn": True,
        "suppress_errors": True,  # of the compiler itself: that function runs eagerly
        "accumulated_recompile_limit": 4096,
    }
    ordinary = {"backed_size_oblivious": True, "use_duck_shape": False}
    with ExitStack() as stack:
        stack.enter_context(attention_in_parts())
        stack.enter_context(room_for_graphs())
        stack.enter_context(settings.patch({key: one for key, one in wanted.items() if hasattr(settings, key)}))
        known = {key: one for key, one in ordinary.items() if hasattr(sizes, key)}
        stack.enter_context(sizes.patch(known))  # type: ignore[attr-defined]
        yield


@contextmanager
def attention_in_parts() -> Iterator[None]:
    """Without torch's fast path for attention: one opaque op for a whole layer could not be compressed.

    The compiler guards its graphs by this state, so it must be the same at every call, read or run.
    """
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)


@contextmanager
def room_for_graphs() -> Iterator[None]:
    """Let the compiler keep more graphs of one function than its usual 8: it counts those of all runners together."""
    import torch._dynamo.config as settings  # noqa: PLC0415 - loading the compiler takes seconds

    before = settings.recompile_limit
    settings.recompile_limit = max(before, MOST_GRAPHS)  # set, not patched: this is done at every call
    try:
        yield
    finally:
        settings.recompile_limit = before


class Frame:
    """One graph of the compiler, and how to read the values that it is called with."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self.nodes = graph.graph.find_nodes(op="placeholder")
        self.digest = graph_digest(graph)
        self.symbols = _symbol_places(self.nodes)
        """Symbol -> (position, dimension), or (position, -1) for a whole number."""
        outputs = graph.graph.output_node().args[0]
        self.outputs: list[Any] = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
        self._known: dict[tuple[int, ...], list[int]] = {}

    def results(self, tensors: Sequence[Tensor], values: Sequence[Any]) -> list[Any]:
        """The results of the graph with these tensors."""
        waiting = iter(tensors)
        numbers = iter(self._numbers(values))
        return [
            next(waiting) if is_tensor_node(node) else next(numbers) if isinstance(node, fx.Node) else node
            for node in self.outputs
        ]

    def _numbers(self, values: Sequence[Any]) -> list[int]:
        """The sizes among the outputs, from the sizes of the inputs."""
        wanted = [node for node in self.outputs if isinstance(node, fx.Node) and not is_tensor_node(node)]
        if not wanted:
            return []
        given = {symbol: _size_at(values[at], dim) for symbol, (at, dim) in self.symbols.items()}
        key = tuple(given.values())
        if key not in self._known:
            self._known[key] = [_number_of(node.meta.get("example_value"), given) for node in wanted]
        return self._known[key]


def is_tensor_node(node: object) -> bool:
    """Whether an output of a compiler's graph is a tensor."""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("example_value"), Tensor)


def graph_digest(graph: fx.GraphModule) -> str:
    """Digest that identifies a graph of a model; the same in every process."""
    shapes = [_shape_text(node.meta.get("example_value")) for node in graph.graph.find_nodes(op="placeholder")]
    text = graph.graph.python_code(root_module="self").src
    return hashlib.sha256("\n".join([text, *shapes]).encode()).hexdigest()[:32]


def _shape_text(value: Any) -> str:
    return str([str(size) for size in value.shape]) + str(value.dtype) if isinstance(value, Tensor) else str(value)


def symbol_of(size: object) -> str:
    """Name of the symbol that a size is; empty if it is a number, or an expression of symbols."""
    expression = getattr(getattr(size, "node", None), "expr", None)
    return str(expression) if getattr(expression, "is_symbol", False) else ""


def _symbol_places(nodes: Sequence[fx.Node]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for position, node in enumerate(nodes):
        value = node.meta.get("example_value")
        for dim, size in enumerate(value.shape if isinstance(value, Tensor) else ()):
            if symbol := symbol_of(size):
                found.setdefault(symbol, (position, dim))
    for position, node in enumerate(nodes):
        if symbol := symbol_of(node.meta.get("example_value")):
            found.setdefault(symbol, (position, -1))
    return found


def _size_at(value: Any, dim: int) -> int:
    return int(value if dim < 0 else value.shape[dim])


def _number_of(value: Any, given: Mapping[str, int]) -> int:
    expression = getattr(getattr(value, "node", None), "expr", value)
    free = getattr(expression, "free_symbols", ())
    return int(expression.subs({one: given[str(one)] for one in free}) if free else expression)


class SubgraphRunner:
    """A model that runs with subgraphs in their places. Call it like the module; it never needs gradients.

    Attributes:
        ran: How many calls of places a subgraph answered.
        missed: How many calls of known places ran eagerly because their sizes were none that the subgraph was made for.
    """

    def __init__(
        self, module: nn.Module, subgraphs: Sequence[HostedSubgraph], *, controls: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.ran = 0
        self.missed = 0
        self._module = own_copy(module)
        self._names = weight_names(self._module)
        self._controls = tuple(controls)
        frames = [one for one in subgraphs if one.place.kind == "frame"]
        self._subgraphs = {(one.place.graph, tuple(name for _, name in one.place.weights)): one for one in frames}
        self._weights_at: dict[str, tuple[int, ...]] = {
            one.place.graph: tuple(position for position, _ in one.place.weights) for one in frames
        }
        self._unseen = set(self._subgraphs)
        for one in subgraphs:
            if one.place.kind == "module":
                self._host_module(one)
        self._found: set[tuple[str, tuple[str, ...]]] = set()
        self._sizes_read: set[tuple[torch.Size, ...]] = set()
        """Shapes of calls that the compiler has traced under these settings."""
        self._is_settled = False
        self._is_stale = False
        self._call: Callable[..., Any] = self._module
        if self.needs_graphs:
            self._compile()

    def _compile(self) -> None:
        """Have the compiler read the model (again); it keeps what it read per backend, so this one is new."""
        self._is_stale = False
        self._unseen = set(self._subgraphs)
        self._sizes_read.clear()
        self._call = torch.compile(self._module, backend=lambda graph, _: self._backend(graph))

    @property
    def module(self) -> nn.Module:
        """The copy of the module that runs; it has the state."""
        return self._module

    @property
    def waiting(self) -> list[str]:
        """Names of the frames that no call has reached yet."""
        return sorted(subgraph.place.name for key, subgraph in self._subgraphs.items() if key not in self._found)

    @property
    def needs_graphs(self) -> bool:
        """Whether any subgraph needs the compiler."""
        return bool(self._subgraphs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        with torch.no_grad():
            if not self.needs_graphs:
                return self._call(*args, **kwargs)
            if self._is_stale:
                self._compile()
            # Changing the settings takes longer than many a subgraph; but sizes never met may be a new path to read.
            sizes = _sizes_of(args, kwargs)
            self._is_settled = not self._unseen and sizes in self._sizes_read
            if self._is_settled:
                try:
                    return self._call_settled(*args, **kwargs)
                except torch._dynamo.exc.TorchDynamoException:
                    self._compile()  # a new path that only our settings get the compiler through
            with subgraph_settings(), marked(self._controls):
                results = self._call(*args, **kwargs)
            if len(self._sizes_read) < MOST_SIZES:
                self._sizes_read.add(sizes)
            return results

    def _call_settled(self, *args: Any, **kwargs: Any) -> Any:
        """`attention_in_parts` and `room_for_graphs` written out: two contexts take as long as a small layer."""
        attention, settings = torch.backends.mha, torch._dynamo.config
        was_fast, limit = attention.get_fastpath_enabled(), settings.recompile_limit
        attention.set_fastpath_enabled(False)
        settings.recompile_limit = max(limit, MOST_GRAPHS)
        try:
            return self._call(*args, **kwargs)
        finally:
            settings.recompile_limit = limit
            attention.set_fastpath_enabled(was_fast)

    # --- frames ---

    def _backend(self, graph: fx.GraphModule) -> Callable[..., Any]:
        # Somebody dropped what the compiler had read, or there is a new path: this graph was not made under our
        # settings, so it runs as it is, and the next call begins anew.
        self._is_stale = self._is_settled
        frame = Frame(graph)
        return lambda *values: self._run_frame(frame, values)

    def _run_frame(self, frame: Frame, values: tuple[Any, ...]) -> Any:
        key = (
            frame.digest,
            tuple(self._names.get(id(values[at]), "") for at in self._weights_at.get(frame.digest, ())),
        )
        subgraph = self._subgraphs.get(key)
        if subgraph is None:
            return frame.graph(*values)
        self._unseen.discard(key)
        self._found.add(key)
        if not subgraph.place.fits(values):
            self.missed += 1
            return frame.graph(*values)
        self.ran += 1
        return frame.results(subgraph.function(*subgraph.place.inputs(values)), values)

    # --- modules ---

    def _host_module(self, subgraph: HostedSubgraph) -> None:
        place = subgraph.place
        child = self._module.get_submodule(place.module)
        eager = child.forward
        nesting, result = pytree.treespec_loads(place.nesting), pytree.treespec_loads(place.result)
        constants = dict(place.constants)

        def forward(*args: Any, **kwargs: Any) -> Any:
            leaves, spec = pytree.tree_flatten((args, kwargs))
            if spec != nesting or not _are_tensors(leaves, place.tensors) or not place.fits(leaves):
                self.missed += 1
                return eager(*args, **kwargs)
            self.ran += 1
            waiting = iter(subgraph.function(*place.inputs(leaves)))
            given = [constants[at] if at in constants else next(waiting) for at in range(result.num_leaves)]
            return pytree.tree_unflatten(given, result)

        child.forward = torch.compiler.disable(forward)  # type: ignore[no-untyped-call]


def _sizes_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[torch.Size, ...]:
    """The shapes of all tensors of a call."""
    if not kwargs and all(isinstance(one, Tensor) for one in args):
        return tuple(one.shape for one in args)
    return tuple(leaf.shape for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))


def _are_tensors(leaves: Sequence[Any], positions: Sequence[int]) -> bool:
    return all(isinstance(leaves[at], Tensor) for at in positions)


def own_copy(module: nn.Module) -> nn.Module:
    """The module tree a second time over the same parameters, so that its forwards can be replaced."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    return copy.deepcopy(module, dict(shared))


def weight_names(module: nn.Module) -> dict[int, str]:
    """Identity of a parameter or buffer -> its name."""
    named = [*module.named_buffers(), *module.named_parameters()]
    return {id(tensor): name for name, tensor in named}


def _nonstrict(function: Any) -> Any:
    mark = getattr(torch.compiler, "nonstrict_trace", None) or torch._dynamo.nonstrict_trace
    return mark(function)


MARKS: dict[str, Callable[[Any], Any]] = {
    "allow_in_graph": torch.compiler.allow_in_graph,
    "nonstrict_trace": _nonstrict,
    "disable": torch.compiler.disable,
}
"""Control of a recipe -> what it does to a function before the compiler reads the model."""


@contextmanager
def marked(controls: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Replace the plain function by the marked one in every module, within the context."""
    with ExitStack() as stack:
        for name, kind in controls:
            if kind in MARKS:
                stack.enter_context(_marked_one(name, MARKS[kind]))
        yield


@contextmanager
def _marked_one(name: str, mark: Callable[[Any], Any]) -> Iterator[None]:
    space, _, path = name.partition(":")
    owner: Any = sys.modules.get(space) or importlib.import_module(space)
    *parents, last = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    plain = getattr(owner, last)
    substitute = stand_in(plain, lambda function: mark(_python_function(function)))
    changed = [(owner, last)]
    for other in list(sys.modules.values()) if not parents else []:
        changed += [
            (other, key)
            for key, value in list(getattr(other, "__dict__", {}).items())
            if value is plain and other is not owner
        ]
    kept = [(target, key, vars(target).get(key, _ABSENT)) for target, key in changed]
    for target, key, _ in kept:
        # A static method stays one: a plain function in its place would be given the object.
        is_static = isinstance(inspect.getattr_static(target, key, None), staticmethod | classmethod)
        setattr(target, key, staticmethod(substitute) if is_static else substitute)
    try:
        yield
    finally:
        for target, key, before in kept:
            if before is _ABSENT:
                delattr(target, key)
            else:
                setattr(target, key, before)


_ABSENT = object()


def stand_in(plain: Any, mark: Callable[[Any], Any]) -> Any:
    """What stands for a function while it is marked; an autograd function is called by the ``apply`` of its class."""
    if not is_autograd_function(plain):
        return mark(plain)

    @functools.wraps(plain, updated=())  # torch writes the name of `apply`, which is torch's own, into graphs
    def apply(*args: Any, **kwargs: Any) -> Any:
        return plain.apply(*args, **kwargs)  # type: ignore[no-untyped-call]

    return type(plain.__name__, (), {"apply": staticmethod(mark(apply))})


def is_autograd_function(target: object) -> TypeGuard[type[torch.autograd.Function]]:
    """Whether it is a class whose ``apply`` computes with a gradient of its own."""
    return inspect.isclass(target) and issubclass(target, torch.autograd.Function)


def _python_function(function: Any) -> Any:
    """The function in a form that the compiler can mark; functions of compiled libraries have none."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


# --- saved subgraphs ---

MANIFEST = "pieces.json"
REST = "rest.safetensors"
"""Weights that are in no subgraph."""


@dataclass(frozen=True)
class SavedSubgraph:
    """One subgraph on disk."""

    place: Place
    path: str
    """Relative to the folder."""
    outputs: tuple[int, ...]
    """Which of the runtime's outputs are the subgraph's tensors."""


@dataclass(frozen=True)
class Manifest:
    """The content of ``pieces.json``."""

    target: str
    model: str
    """Class of the module that the subgraphs belong to."""
    pieces: tuple[SavedSubgraph, ...]
    opener: str
    """Which of `OPENERS` opens the subgraphs."""
    controls: tuple[tuple[str, str], ...] = ()
    format: int = 1
    versions: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write it into the folder."""
        (folder / MANIFEST).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read it back. Raises ValueError for a format that this file does not know."""
        stored = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if stored.get("format") != 1:
            raise ValueError(f"{folder / MANIFEST} has format {stored.get('format')}; this file reads format 1")
        subgraphs = tuple(
            SavedSubgraph(_read_place(one["place"]), one["path"], tuple(one["outputs"])) for one in stored["pieces"]
        )
        controls = tuple((name, kind) for name, kind in stored["controls"])
        opener = stored.get("opener", stored["target"])  # version 0.1 named only the target
        return cls(stored["target"], stored["model"], subgraphs, opener, controls, versions=stored["versions"])


def _read_place(stored: dict[str, Any]) -> Place:
    known = {one.name for one in fields(Place)}
    return Place(**{key: _tuples(value) for key, value in stored.items() if key in known})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def load(module: nn.Module, folder: str | Path, *, threads: int | None = None) -> SubgraphRunner:
    """The saved subgraphs in the places of ``module``.

    Args:
        module: The model that was captured, built by the same code. Weights that are in no subgraph are loaded into it.
        folder: Where the subgraphs are.
        threads: Threads for the runtime; torch's own number if None.

    Raises: ValueError if the module is none of the class that was captured; ImportError if the runtime is missing.
    """
    folder = Path(folder)
    manifest = Manifest.read(folder)
    if type(module).__name__ != manifest.model:
        raise ValueError(f"the subgraphs belong to a {manifest.model}, not to a {type(module).__name__}")
    module.eval()
    rest = folder / REST
    if rest.is_file():
        module.load_state_dict(load_file(rest), strict=False)
    threads = threads or torch.get_num_threads()
    hosted = []
    for saved in manifest.pieces:
        run = OPENERS[manifest.opener](folder / saved.path, threads)
        hosted.append(HostedSubgraph(saved.place, _chosen(run, saved.outputs)))
    return SubgraphRunner(module, hosted, controls=manifest.controls)


def _chosen(run: Flat, outputs: Sequence[int]) -> Flat:
    def call(*tensors: Tensor) -> list[Tensor]:
        flat = list(run(*tensors))
        return [flat[at] for at in outputs]

    return call


def _open_onnxruntime(path: Path, threads: int) -> Flat:
    import onnxruntime  # noqa: PLC0415 - only if it is what the subgraphs were built for

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(*tensors: Tensor) -> list[Tensor]:
        arrays = [tensor.cpu().contiguous().numpy() for tensor in tensors]
        results = session.run(None, dict(zip(names, arrays, strict=True)))
        device = tensors[0].device if tensors else "cpu"  # the model between the subgraphs may be on a GPU
        return [torch.from_numpy(one).to(device) for one in results]

    return run


def _open_openvino(path: Path, threads: int) -> Flat:
    import openvino  # noqa: PLC0415 - only if it is what the subgraphs were built for

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core = openvino.Core()
    model = core.read_model(str(path))
    for key in ("INFERENCE_PRECISION_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE"):
        if model.has_rt_info(["ace_studio", key]):  # how it was measured; OpenVINO itself does not read it
            settings[key] = str(model.get_rt_info(["ace_studio", key]).astype(str))
    request = core.compile_model(model, "CPU", settings).create_infer_request()

    def run(*tensors: Tensor) -> list[Tensor]:
        found = request.infer([tensor.contiguous().numpy() for tensor in tensors])
        return [torch.from_numpy(one.copy()) for one in found.values()]

    return run


def _open_program(path: Path, _: int) -> Flat:
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # makes the int8 ops known
    module = torch.export.load(path).module(check_guards=False)
    return lambda *tensors: pytree.tree_leaves(module(*tensors))


def _open_compiled(path: Path, threads: int) -> Flat:
    import torch._inductor.config as settings  # noqa: PLC0415 - as above

    compiled = torch.compile(_open_program(path, threads))

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        with settings.patch(freezing=True):
            return compiled(*tensors)

    return run


def _open_package(path: Path, _: int) -> Flat:
    from torch._inductor import aoti_load_package  # noqa: PLC0415 - as above

    package = aoti_load_package(str(path))
    # The machine code believes that its inputs are contiguous.
    return lambda *tensors: pytree.tree_leaves(package(*[tensor.contiguous() for tensor in tensors]))


def _open_executorch(path: Path, threads: int) -> Flat:
    from executorch.extension.pybindings import portable_lib  # noqa: PLC0415 - as above
    from executorch.runtime import Runtime  # noqa: PLC0415 - as above

    if portable_lib._threadpool_get_thread_count() != threads:
        portable_lib._unsafe_reset_threadpool(threads)
    held = path.read_bytes()
    program = Runtime.get().load_program(held)
    method = program.load_method("forward")

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        assert held and program  # the method reads weights where they lie
        results = method.execute([tensor.contiguous() for tensor in tensors])
        return [one if isinstance(one, Tensor) else torch.tensor(one) for one in results]

    return run


def _open_litert(path: Path, threads: int) -> Flat:
    from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415 - as above

    model = Interpreter(str(path), num_threads=threads)
    inputs, outputs = (
        [one["index"] for one in found()] for found in (model.get_input_details, model.get_output_details)
    )

    def run(*tensors: Tensor) -> list[Tensor]:
        arrays = [tensor.contiguous().numpy() for tensor in tensors]
        for index, array in zip(inputs, arrays, strict=True):
            model.resize_tensor_input(index, array.shape, strict=True)
        model.allocate_tensors()
        for index, array in zip(inputs, arrays, strict=True):
            model.set_tensor(index, array)
        model.invoke()
        return [torch.as_tensor(model.get_tensor(index)) for index in outputs]

    return run


OPENERS: dict[str, Callable[[Path, int], Flat]] = {
    "eager": _open_program,
    "inductor": _open_compiled,
    "aoti": _open_package,
    "onnxruntime": _open_onnxruntime,
    "openvino": _open_openvino,
    "executorch": _open_executorch,
    "litert": _open_litert,
}
"""Opener -> function that opens a saved subgraph. The row of a target names its opener; most have their own."""
