"""Names of torch's compiler (dynamo) that are private or differ between releases."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType, ModuleType, TracebackType
from typing import Any

import torch
import torch._dynamo.config as _settings  # here, because loading it must not be interrupted, nor lack file descriptors
import torch.export._trace  # as dynamo
from torch._dynamo import symbolic_convert
from torch.fx.experimental import _config as _shape_config

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.exporting import sizes_of_one_are_ordinary
from ace_studio.engine.torch_private.plain_ops import layers_of_single_ops
from ace_studio.engine.torch_private.recurrent_layers import recurrent_layers_kept_whole
from ace_studio.engine.torch_private.symbols import short_sizes

# --- loading and forgetting ---


def forget_traces() -> None:
    """Drop the tracer's caches of earlier models, so that one capture does not influence the next."""
    torch._dynamo.reset()
    _forget_stale_imports()


def leave_transforms() -> None:
    """End what a failed trace left of vmap, grad and jvp (torch 2.13).

    Random numbers would be refused from then on, and jvp as nested in itself.
    """
    torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)
    with suppress(RuntimeError):  # there is no level to leave, as there is after most traces
        torch._C._exit_dual_level(level=0)


_MODULES_BEFORE: dict[str, ModuleType] = {}
"""The modules at the last look for stale names, which goes through all names of all of them: a tenth of a second."""


def _forget_stale_imports() -> None:
    """Remove names that the compiler left for modules that have been reloaded since, as edited files are."""
    modules = {name: one for name, one in list(sys.modules.items()) if type(one) is ModuleType}
    if modules == _MODULES_BEFORE:
        return
    _MODULES_BEFORE.clear()
    _MODULES_BEFORE.update(modules)
    for space in modules.values():
        names = vars(space)
        for name in [one for one in names if str(one).startswith("__import_")]:
            value = names[name]
            if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is not value:
                del names[name]


@contextmanager
def whole_graph_capture() -> Iterator[None]:
    """Set torch.compile so that it keeps free sizes distinct and captures whole graphs as often as possible."""
    wanted = ("allow_rnn", "capture_scalar_outputs", "capture_dynamic_output_shape_ops", "inline_inbuilt_nn_modules")
    chosen = {name: True for name in wanted if hasattr(_settings, name)}
    with (
        _settings.patch(chosen),
        layers_of_single_ops(),
        sizes_of_one_are_ordinary(),
        recurrent_layers_kept_whole(),
        short_sizes(),
        _shape_config.patch(use_duck_shape=False),  # type: ignore[attr-defined]
    ):
        yield


def traced_without_analysis(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, marked so that the compiler runs it with symbolic tensors instead of reading its Python code."""
    mark: Any = getattr(torch.compiler, "nonstrict_trace", torch._dynamo.nonstrict_trace)
    marked: Callable[..., Any] = mark(function)
    return marked


def failure_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The Python frames behind a failed trace, outermost first; kinds of errors keep them in different places."""
    frames = list(traceback.extract_tb(error.__traceback__))
    frames += list(getattr(error, "real_stack", None) or [])
    named = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    frames += [traceback.FrameSummary(file, int(line), "") for file, line in named]
    return frames + _guard_frames(error.__traceback__)


def _guard_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames in which sizes were fixed; for a constraint violation only the tracer that raised has them."""
    while trace is not None:
        environment = getattr(trace.tb_frame.f_locals.get("fake_mode"), "shape_env", None)
        if environment is not None:
            fixed = [symbol for symbol, value in environment.replacements.items() if value.is_number]
            places = [getattr(guard, "sloc", None) for guard in getattr(environment, "guards", ())]
            places += [getattr(environment, "replacements_slocs", {}).get(symbol) for symbol in fixed]
            found = [getattr(place, "framework_loc", None) for place in places]
            return [frame for frame in found if isinstance(frame, traceback.FrameSummary)]
        trace = trace.tb_next
    return []


def is_compiler_error(error: BaseException) -> bool:
    """Whether torch's compiler raised an error of its own kind, whose words are about its own inside."""
    return type(error).__module__.startswith("torch._dynamo")


def failure_kind(error: BaseException) -> str:
    """The compiler's name of the unsupported construct, such as ``Data-dependent branching``; empty if it has none."""
    return str(getattr(error, "gb_type", "") or "")


_ROOT = re.compile(r"^L(\['\w+'\]|__\w+?__)")
_CHILD = re.compile(r"\._modules\['([^']+)'\]|\['([^']+)'\]|\[(\d+)\]")


def readable_path(source: str) -> str:
    """The dotted path (``blocks.1``) of what the compiler calls ``L['self']._modules['blocks']._modules['1']``."""
    text = _CHILD.sub(lambda match: "." + next(filter(None, match.groups())), _ROOT.sub("", source))
    return text.lstrip(".").removeprefix("_export_root.")


@dataclass(frozen=True)
class HeardBreak:
    """A place where the compiler stopped reading: it continues behind it, or gives up the whole function."""

    error: BaseException
    frames: tuple[traceback.FrameSummary, ...]
    """The user's stack at that place, outermost first."""
    skips_frame: bool
    """Whether the whole function runs eagerly because of it."""


@contextmanager
def graph_breaks_heard(hear: Callable[[HeardBreak], object]) -> Iterator[None]:
    """Call ``hear`` for every place at which the compiler stops, while the block runs."""
    owner: Any = symbolic_convert.InstructionTranslatorBase
    before = getattr(owner, "log_graph_break", None)
    if before is None:  # another release of torch reports breaks elsewhere; subgraphs are found all the same
        yield
        return

    def listen(self: Any, code_options: Any, reason: Any = "", exc: Any = None, **more: Any) -> Any:
        stack = getattr(exc, "real_stack", None) or torch._guards.TracingContext.extract_stack()
        skips = bool(getattr(exc, "skip_frame", False)) or "Skipping the" in str(reason)[:200]
        hear(HeardBreak(exc, tuple(stack or ()), skips))
        return before(self, code_options, reason, exc, **more)

    with replaced_attribute(owner, "log_graph_break", listen):
        yield


@dataclass(frozen=True)
class StackLook:
    """What a tracing thread is busy with at one moment."""

    file: str = ""
    line: int = 0
    """Innermost line of the user's code; an empty file if none is on the stack."""
    module: torch.nn.Module | None = None
    """Innermost module whose forward is being run."""
    module_path: str = ""
    """The tracer's own name of the module, where the model is read and not run."""
    is_in_size_arithmetic: bool = False
    """Whether it computes with symbolic sizes at the user's line, not with an op."""


_SIZE_FILES = ("/sympy/", "/torch/utils/_sympy/", "/torch/fx/experimental/symbolic_shapes.py")
_READER_FILE = "/torch/_dynamo/symbolic_convert.py"


def look_at_stack(
    frame: FrameType | None, *, is_user_file: Callable[[str], bool], outer: frozenset[int] = frozenset()
) -> StackLook:
    """Read another thread's stack, from the innermost frame to the first whose id is in ``outer``.

    Costs about a microsecond per frame, and changes nothing.
    """
    file, line, module, path, is_size = "", 0, None, "", False
    call_code = torch.nn.Module._call_impl.__code__
    while frame is not None and id(frame) not in outer and not (file and (module or path)):
        code, name = frame.f_code, frame.f_code.co_filename.replace("\\", "/")
        if name.endswith(_READER_FILE):
            reader = frame.f_locals.get("self")
            path = path or _path_that_is_read(reader)
            read = getattr(getattr(reader, "f_code", None), "co_filename", "")
            if not file and read and is_user_file(read):
                file, line = read, int(getattr(reader, "lineno", 0) or 0)
        elif not file and is_user_file(code.co_filename):
            file, line = code.co_filename, frame.f_lineno
        elif code is call_code and module is None:
            module = frame.f_locals.get("self")
        is_size = is_size or (not file and any(part in name for part in _SIZE_FILES))
        frame = frame.f_back
    return StackLook(file, line, module, path, is_size)


def _path_that_is_read(reader: object) -> str:
    entries = list((getattr(reader, "nn_module_stack", None) or {}).values())
    return str(entries[-1][0]) if entries else ""
