"""The cache of captures: opening the same model again does not trace again.

An entry holds the graph without tensors (the program uses the live module's own weights), its table, the findings and
the report. A program from the cache is run and compared with eager: on the first example if no number changed since, on
all of them if weights or examples changed. An entry that differs from eager, is damaged, or reads differently than it
was written is dropped, and the model is traced.

Nothing is ever unpickled. A stored graph holds expressions over sizes that torch evaluates as Python when it reads
them; the store gives only files that it has signed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from ace_studio.engine.capture.cache_key import cache_key, content_digest, file_digest, late_files, own_tensors
from ace_studio.engine.capture.cache_store import CaptureStore
from ace_studio.engine.capture.computed_weights import is_computed_weight
from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.capture.model_warnings import DATA_WARNINGS, warn_about_results
from ace_studio.engine.capture.output import captured_output
from ace_studio.engine.capture.verify import GraphRun, check_example
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import compare_examples, example_at, tracing_example
from ace_studio.engine.torch_private.stored import program_from_json, program_to_json, reading_of
from ace_studio.records.errors import AceError
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import AttemptStatus, CaptureReport

Shapes = tuple[tuple[int, ...], ...]
"""Of every tensor leaf of one example."""


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an entry beside the graph."""

    key: str
    report: CaptureReport
    table: GraphTable
    unseen: tuple[Shapes, ...]
    content: str
    """`content_digest` of the model and the examples that it was compared on."""
    files: dict[str, str]
    """`late_files`."""
    state: tuple[str, ...]
    """Names of the program's parameters and buffers, all of them the live module's own but for `computed`."""
    computed: tuple[str, ...] = ()
    """Those of `state` that were computed from the module's, and are stored: other weights make the entry stale."""
    live_constants: tuple[str, ...]
    """Names of its constants that are buffers of the live module; the others are stored."""
    reading: str
    """Digest of the graph as text and its conditions."""
    ranges: dict[str, str]
    """Symbol -> range in which the graph is valid."""


@dataclass(frozen=True)
class CaptureCache:
    """The cache as one capture sees it."""

    store: CaptureStore
    key: str
    loaded: LoadedModel
    examples: tuple[Example, ...]
    recipe: Recipe
    device: torch.device
    reporter: Reporter

    @classmethod
    def for_capture(
        cls, loaded: LoadedModel, examples: Sequence[Example], recipe: Recipe, *, fingerprint: str,
        device: torch.device, reporter: Reporter,
    ) -> CaptureCache | None:  # fmt: skip
        """The cache for this capture; None if it is off, or if changes of the model's code would go unnoticed."""
        store = CaptureStore.of_user() if recipe.capture.cache and loaded.sha256 and examples else None
        if store is None:
            return None
        try:
            key = cache_key(loaded, examples, fingerprint=fingerprint)
        except Exception:  # noqa: BLE001 - repr() of the user's objects may raise anything
            return None
        return cls(store, key, loaded, tuple(examples), recipe, device, reporter)

    # --- finding ---

    def find(self, fingerprint: str) -> tuple[CapturedModel, CaptureReport] | None:
        """The capture from the cache, compared with eager again; None if there is none.

        Raises: AceError(BAD_INPUT or USER_CODE) if the model does not run; Cancelled.
        """
        parts = self.store.read(self.key)
        if parts is None:
            return None
        started = time.monotonic()
        try:
            with torch.no_grad():
                return self._revived(parts, fingerprint, started)
        except AceError:
            raise
        except _StaleError:
            pass
        except Exception:  # noqa: BLE001 - whatever a damaged entry leads to, the model can be traced
            self.store.drop(self.key)
        return None

    def _revived(
        self, parts: Mapping[str, bytes], fingerprint: str, started: float
    ) -> tuple[CapturedModel, CaptureReport]:
        entry = msgspec.msgpack.decode(parts["entry"], type=CacheEntry)
        self._check_is_current(entry)
        self.reporter.phase(Phase.VERIFY, f"the capture of {entry.report.rung} from the cache")
        module = self.loaded.module
        eager = EagerRun.of(module)
        is_same_content = entry.content == content_digest(module, self.examples)
        if entry.computed and not is_same_content:
            raise _StaleError
        to_prove = self.examples[:1] if is_same_content else self.examples
        expected = [run_example(eager, one, label=f"example {n}") for n, one in enumerate(to_prove, start=1)]
        inputs = compare_examples(module, self.examples, choices=self.recipe.inputs.dims)
        tracing, _ = tracing_example(self.examples, inputs)
        program = _program_of(entry, parts, module, tracing)
        graph = GraphRun(program)
        for example, result in zip(to_prove, expected, strict=True):
            self.reporter.check()
            if check_example(graph, example, expected=result, label="an example") is not None:
                raise ValueError("it computes something else now")
        self._warn(entry, expected, is_same_content=is_same_content)
        unseen = tuple(_at_shapes(tracing, shapes) for shapes in entry.unseen)
        captured = CapturedModel(
            program=program, table=entry.table, inputs=entry.report.inputs, example=tracing,
            examples=(*self.examples, *unseen), unseen=unseen, module=module, device=self.device,
            fingerprint=fingerprint, first_state=eager.first_values(),
        )  # fmt: skip
        seconds, warnings = time.monotonic() - started, tuple(self.reporter.warnings)
        return captured, msgspec.structs.replace(entry.report, cached=True, seconds=seconds, warnings=warnings)

    def _check_is_current(self, entry: CacheEntry) -> None:
        if entry.key != self.key:
            raise ValueError("it belongs to another model")
        if any(file_digest(Path(path)) != digest for path, digest in entry.files.items()):
            raise ValueError("a file that the model imports has changed")
        skipped = [one for one in entry.report.rungs if one.status is AttemptStatus.SKIPPED and one.error is None]
        if self.recipe.capture.compare_rungs and skipped:
            raise _StaleError

    def _warn(self, entry: CacheEntry, results: Sequence[Any], *, is_same_content: bool) -> None:
        for one in entry.report.warnings:
            if is_same_content or one.code not in DATA_WARNINGS:
                self.reporter.warn(one.code, one.what, where=one.where)
        if not is_same_content:
            warn_about_results(self.loaded.module, results, self.reporter)

    # --- keeping ---

    def keep(self, captured: CapturedModel, report: CaptureReport) -> None:
        """Keep a capture, unless it cannot be written (because a call in the graph is no operator, say)."""
        try:
            parts = self._parts_of(captured, report)
        except Exception:  # noqa: BLE001 - torch and the user's objects raise anything here; nothing depends on it
            return
        if parts is not None:
            self.store.write(self.key, parts)

    def _parts_of(self, captured: CapturedModel, report: CaptureReport) -> dict[str, bytes] | None:
        program, module = captured.program, captured.module
        computed = program.state_dict.keys() - _live_names(program.state_dict, module)
        if not all(map(is_computed_weight, computed)):
            return None
        live = _live_names(program.constants, module)
        stored = {name: value for name, value in program.constants.items() if name not in live}
        stored |= {name: program.state_dict[name] for name in computed}
        if not all(type(value) in (Tensor, nn.Parameter) for value in stored.values()):
            return None
        graph = program_to_json(program)
        entry = CacheEntry(
            key=self.key,
            report=report,
            table=captured.table,
            unseen=tuple(one.shapes() for one in captured.unseen),
            content=content_digest(module, self.examples),
            files=late_files(self.loaded),
            state=tuple(program.state_dict),
            computed=tuple(computed),
            live_constants=tuple(name for name in program.constants if name in live),
            reading=reading_of(program),
            ranges=_ranges(program),
        )
        constants = {name: value.detach().cpu().clone().contiguous() for name, value in stored.items()}
        return {"entry": msgspec.msgpack.encode(entry), "graph": graph, "constants": safetensors.torch.save(constants)}


class _StaleError(Exception):
    """The entry is valid, but holds less than the recipe asks for now."""


def _program_of(entry: CacheEntry, parts: Mapping[str, bytes], module: nn.Module, tracing: Example) -> ExportedProgram:
    own = own_tensors(module)
    device = next((tensor.device for tensor in (*own.values(), *tracing.tensors())), torch.device("cpu"))
    stored = {name: value.to(device) for name, value in safetensors.torch.load(parts["constants"]).items()}
    own |= {name: nn.Parameter(stored.pop(name), requires_grad=False) for name in entry.computed}
    graph = parts["graph"]
    with captured_output():
        program = program_from_json(
            graph,
            state={name: own[name] for name in entry.state},
            constants={name: own[name] for name in entry.live_constants} | stored,
            example=(tracing.args, dict(tracing.kwargs)),
        )
    # A symbol that no op of the graph has any more is not read back, and limits nothing.
    if reading_of(program) != entry.reading or not _ranges(program).items() <= entry.ranges.items():
        raise ValueError("it reads differently than it was written")
    return program


def _live_names(held: Mapping[str, Any], module: nn.Module) -> set[str]:
    """Names under which the program holds the module's own tensors."""
    own = own_tensors(module)
    return {
        name
        for name, value in held.items()
        if name in own and isinstance(value, Tensor)
        and value.shape == own[name].shape and value.dtype == own[name].dtype
        and value.untyped_storage().data_ptr() == own[name].untyped_storage().data_ptr()
        and value.storage_offset() == own[name].storage_offset() and value.stride() == own[name].stride()
    }  # fmt: skip


def _at_shapes(example: Example, shapes: Shapes) -> Example:
    return example_at(example, {(leaf, dim): size for leaf, one in enumerate(shapes) for dim, size in enumerate(one)})


def _ranges(program: ExportedProgram) -> dict[str, str]:
    return {str(symbol): str(bounds) for symbol, bounds in program.range_constraints.items()}
