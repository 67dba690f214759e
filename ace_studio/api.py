"""The Python entry point: ``ace_studio.compile`` runs the engine in this process on a live module."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from ace_studio.engine import pipeline
from ace_studio.engine.flow import DataSources, Example, LoadedModel, put_in_eval_mode
from ace_studio.engine.load import without_script
from ace_studio.engine.progress import Reporter
from ace_studio.engine.report import write_report
from ace_studio.engine.targets.base import CompiledModule, Lowered
from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.fixes import FixReport, ranked_fixes
from ace_studio.records.messages import Event
from ace_studio.records.private_folder import temporary_base, use_private_caches
from ace_studio.records.recipes.check import recipe_faults
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result, RunStatus, TargetRun
from ace_studio.records.results.words import measured_words, ms_words, ratio_words
from ace_studio.records.safe_file import make_output_folder
from ace_studio.session.artifacts import copy_to


class CompileResult:
    """What `compile` gives: the drop-in module, the report, and the artifacts on disk.

    Attributes:
        report: Everything that was found, per run and per op; see `ace_studio.records.results.Result`.
        folder: Folder with ``result.json``, ``report.html``, ``comparison.svg`` and the artifacts.
    """

    def __init__(self, report: Result, folder: Path, lowered: Lowered | None) -> None:
        self.report = report
        self.folder = folder
        self._lowered = lowered

    def __repr__(self) -> str:
        """The folder, the baseline and every run on a line each; the chosen run has a star."""
        base = self.report.baseline
        parts = [f"  {words}"] if (words := measured_words(self.report)) else []
        if base is not None and base.latency_ms is not None:
            parts.append(f"  {base.name}: {ms_words(base.latency_ms.p50)} ms")
        runs = (self._line(run, is_chosen=at == self.report.chosen) for at, run in enumerate(self.report.runs))
        return "\n".join((f"CompileResult in {self.folder}", *parts, *runs))

    @staticmethod
    def _line(run: TargetRun, *, is_chosen: bool) -> str:
        figures = (
            (run.latency_ms and ms_words(run.latency_ms.p50), "{} ms"),
            (ratio_words(run, "speedup") or None, "{}"),
            (run.metric, "metric {:.4g}"),
            (run.sqnr_db, "{:.1f} dB"),
            (run.size_bytes and run.size_bytes / 1e6, "{:.3g} MB"),
        )
        if run.status is RunStatus.OK:
            words = ", ".join(form.format(figure) for figure, form in figures if figure is not None)
        else:
            words = f"{run.status}: {run.error.what}" if run.error is not None else str(run.status)
        return f"{'*' if is_chosen else ' '} {run.target} {run.built_words}: {words}"

    def _repr_svg_(self) -> str | None:
        """The comparison as a picture, which notebooks show."""
        picture = self.folder / "comparison.svg"
        return picture.read_text(encoding="utf-8") if picture.is_file() else None

    @property
    def module(self) -> nn.Module:
        """The chosen run as a module.

        Raises: AceError(UNSUPPORTED) if no target gave a verified artifact; the report says why for each.
        """
        if self._lowered is None:
            raise AceError(*([self.report.error] if self.report.error else []))
        return CompiledModule(self._lowered)

    def export(self, path: str | Path) -> Path:
        """Copy the verified artifact of the kind that ``path``'s suffix names to ``path``, and return it.

        A ``.sha256`` file beside the copy lists its files.

        ``.onnx`` comes from ONNX Runtime, ``.xml`` (with ``.bin``) from OpenVINO, ``.pt2`` from Inductor or eager. A
        model in subgraphs is a folder: give a path without a suffix. The chosen run is preferred; else the fastest run
        that has such an artifact.

        Raises: AceError(NOT_FOUND) if no run has an artifact of that kind, or as `copy_to`.
        """
        destination = Path(path)
        copy_to(self._artifact_with(destination.suffix), destination)
        return destination

    def _artifact_with(self, suffix: str) -> Path:
        runs = list(self.report.runs)
        if self.report.chosen is not None:
            runs.insert(0, runs[self.report.chosen])
        usable = [run for run in runs if run.status is RunStatus.OK and run.verified and run.artifact]
        ranked = usable[:1] + sorted(usable[1:], key=lambda run: run.latency_ms.p50 if run.latency_ms else float("inf"))
        for run in ranked:
            if run.artifact and Path(run.artifact).suffix == suffix:
                return self.folder / run.artifact
        kinds = sorted({Path(run.artifact).suffix or "a folder" for run in usable if run.artifact})
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"No run left a '{suffix}' artifact",
            why="each target writes one kind of file: onnxruntime .onnx, openvino .xml, inductor and eager .pt2",
            remedy=f"Export to one of: {', '.join(kinds) or 'none was verified'}; or add the target that writes it.",
        )


def compile(  # noqa: PLR0913 - the product's name, and one keyword per choice of the recipe
    model: nn.Module,
    *,
    tracing_inputs: Iterable[object] | Callable[[], Iterable[object]] | None = None,
    calibration_inputs: Iterable[object] | Callable[[], Iterable[object]] | None = None,
    evaluate: Callable[[Callable[..., Any]], Any] | None = None,
    higher_is_better: bool = True,
    metric: str = "",
    evaluation_data: Iterable[object] | Callable[[], Iterable[object]] | str | Path | None = None,
    output: str = "",
    dims: dict[str, str] | None = None,
    shapes_from: str = "examples",
    default: str | None = None,
    rules: Sequence[tuple[str, str] | Mapping[str, Any]] = (),
    max_drop: float | None = None,
    min_sqnr_db: float | None = None,
    max_size_mb: float | None = None,
    max_latency_ratio: float | None = None,
    optimize: str = "latency",
    target: str | Sequence[str] = "auto",
    sizes: Mapping[str, Sequence[int]] | None = None,
    rungs: Sequence[str] | None = None,
    controls: Sequence[tuple[str, str]] = (),
    time_limit_s: float = 600.0,
    compare_rungs: bool = False,
    batch_only: bool = False,
    samples: int = 64,
    subset: str = "first",
    observer: str = "min-max",
    percentile: float = 99.99,
    weights: str = "per-channel",
    activations: str = "affine",
    rest: str = "fp32",
    group_size: int = 32,
    improve: Sequence[str] = (),
    improve_by_search: bool = True,
    improve_max_seconds: float = 120.0,
    sensitivity: Mapping[str, Any] | None = None,
    threads: int | str = 1,
    rounds: int = 30,
    device: str = "auto",
    profile: bool = True,
    batches: Sequence[int] = (),
    decode: Mapping[str, Any] | None = None,
    prune: Mapping[str, Any] | None = None,
    finetune: Mapping[str, Any] | None = None,
    finetune_data: Iterable[object] | Callable[[], Iterable[object]] | None = None,
    finetune_loss: Callable[[Any, Any], Any] | None = None,
    out: str | Path | None = None,
    on_event: Callable[[Event], None] = lambda _event: None,
) -> CompileResult:
    """Trace, compress, lower, measure and verify ``model``; keys of the recipe are keywords.

    Args:
        model: The module; it is put in eval mode and left as it is otherwise.
        tracing_inputs: Examples (tuple = args, dict = kwargs, tensor = the one argument) or a function that gives
            them; sizes that differ between examples become dynamic. Missing: ``calibration_inputs`` serve.
        calibration_inputs: Examples to find activation ranges with, or a function that gives them.
        evaluate: ``evaluate(predict) -> float``, or the scores of all samples; predict takes what forward takes.
        higher_is_better: Whether a larger value of your own metric is a better one.
        metric: Instead of ``evaluate``: top-1, top-5, f1, auc, spearman, mse or perplexity.
        evaluation_data: What the metric is measured on: (inputs, labels) pairs, a function that gives them, or the
            path of a file with the inputs and ``labels`` by name.
        output: Output that the metric judges, such as ``0`` or ``logits``; the first tensor by default.
        dims: ``{"x.0": "dynamic" | "static" | "auto"}`` overrides.
        shapes_from: ``data`` to add examples at the sizes that calibration and evaluation use; else a job whose data
            have sizes that no example covers stops before anything is built.
        default: Precision of every op that no rule matches: fp32, fp16, bf16, int8-static, int8-dynamic, ...; without
            it and with a goal, the goal chooses.
        rules: ``(match, precision)`` pairs, such as ``("module:layer1.*", "fp32")``, or the keys of ``[[plan.rules]]``;
            later ones win.
        max_drop: Largest relative drop of the metric, a fraction.
        min_sqnr_db: Smallest fidelity of the outputs, dB.
        max_size_mb: Largest artifact, 10^6 bytes.
        max_latency_ratio: Largest latency as a fraction of the baseline's.
        optimize: ``latency``, ``size`` or ``accuracy``.
        target: A target, several, or ``auto`` for all that are available.
        sizes: ``{"x.0": (1, 4, 8)}``: smallest, usual and largest size, for TensorRT and ExecuTorch.
        rungs: Capture methods to try, in order.
        controls: ``(function, treatment)`` pairs, such as ``("model:get_number", "nonstrict_trace")``.
        time_limit_s: Seconds that one capture method may take.
        compare_rungs: Whether the methods behind the first that succeeds are tried too, for a comparison.
        batch_only: Whether only the batch stays dynamic, for a model whose trace takes too long.
        samples: Calibration examples to use at most.
        subset: Which, if there are more: ``first``, ``spread`` or ``random``.
        observer: How activation ranges follow from the examples: ``min-max``, ``percentile``, ``mse`` or ``entropy``.
        percentile: Share of the values that the percentile observer keeps, in percent.
        weights: Granularity of the scales of 8-bit weights: ``per-channel`` or ``per-tensor``.
        activations: Grids of 8-bit activations: ``affine`` or ``symmetric``.
        rest: Precision of ops that a target cannot run as planned: ``fp32``, ``bf16`` or ``fp16``.
        group_size: Weights that share a scale where only weights are quantized; 0: a whole channel.
        improve: What to try beyond plain quantization, in order: ``equalize``, ``smoothquant``, ``bias-correction``,
            ``compensate``, ``gptq``, ``awq``, ``learned-rounding``; each is kept only if it helps.
        improve_by_search: Whether a search for a goal tries these by itself before it keeps ops high.
        improve_max_seconds: The most time that ``learned-rounding`` takes to learn, per plan.
        sensitivity: The keys of ``[sensitivity]``: ``{"scan": "on"}``.
        threads: Threads for every target and the baseline, ``"all"``, or ``"best"``: the number with which the
            original is fastest.
        rounds: Interleaved measuring rounds.
        device: ``auto``, ``cpu`` or ``cuda``.
        profile: Whether ops are timed one by one.
        batches: Batch sizes to measure the throughput at.
        decode: The model is one step of a decoder: ``{"token": "token", "feed": {"cache": "1"}, "tokens": 32}``;
            see the keys of ``[measure] decode``.
        prune: The keys of ``[prune]``: ``{"method": "structured", "amount": 0.3}``.
        finetune: The keys of ``[finetune]``: ``{"method": "distill", "epochs": 5}``; without ``data`` and ``loss``.
        finetune_data: Batches to train on, or a function that gives them: inputs, or (input, label) pairs with a loss.
        finetune_loss: ``loss(output, label)`` -> a scalar tensor.
        out: Folder for the artifacts and the report; a temporary one if missing.
        on_event: Is called with progress and findings as they come.

    Raises: AceError with what, why, remedy and where; a goal that is not met is no error: ``report.goal_met`` says it.
    """
    put_in_eval_mode(_checked_module(model))
    recipe = _recipe_of(
        {
            "inputs": {"dims": dims or {}, "shapes_from": shapes_from},
            "capture": _capture_table(rungs, controls)
            | {"time_limit_s": float(time_limit_s), "compare_rungs": compare_rungs, "batch_only": batch_only},
            "calibration": {
                "samples": samples,
                "subset": subset,
                "observer": observer,
                "percentile": float(percentile),
            },
            "improve": {
                "methods": list(improve) or None,
                "by_search": improve_by_search,
                "max_seconds": float(improve_max_seconds),
            },
            "sensitivity": dict(sensitivity or {}),
            "evaluate": {
                "function": "evaluate" if evaluate is not None and metric else None,  # refused: one of them is enough
                "higher_is_better": higher_is_better,
                "metric": metric or None,
                "data": _data_words(evaluation_data) or None,
                "output": output or None,
            },
            "goal": {
                "max_drop": max_drop,
                "min_sqnr_db": min_sqnr_db,
                "max_size_mb": max_size_mb,
                "max_latency_ratio": max_latency_ratio,
                "optimize": optimize,
            },
            "measure": {
                "threads": threads,
                "rounds": rounds,
                "device": device,
                "profile": profile,
                "batches": list(batches),
                "decode": None if decode is None else dict(decode),
            },
            "targets": {
                "names": [target] if isinstance(target, str) else list(target),
                "sizes": {dim: list(three) for dim, three in (sizes or {}).items()},
            },
            "prune": dict(prune or {}),
            "finetune": dict(finetune or {})
            | {
                "data": None if finetune_data is None else "finetune_data",
                "loss": None if finetune_loss is None else "finetune_loss",
            },
        },
        default=default,
        rules=rules,
        grids={"weights": weights, "activations": activations, "group_size": group_size, "rest": rest},
    )
    calibration = _as_function(calibration_inputs)
    module, reference = without_script(model)
    loaded = LoadedModel(
        module=module,
        source=Path(),
        sha256="",
        data=DataSources(
            calibration=calibration,
            tracing=_as_function(tracing_inputs) or calibration,
            finetune=_as_function(finetune_data),
            finetune_loss=finetune_loss,
            evaluate=evaluate,
            labelled=None if isinstance(evaluation_data, str | Path) else _as_function(evaluation_data),
        ),
        reference=reference,
    )
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="ace-studio-", dir=temporary_base()))
    return _compiled(loaded, recipe, folder, Reporter(on_event, job="compile"))


def _compiled(loaded: LoadedModel, recipe: Recipe, folder: Path, reporter: Reporter) -> CompileResult:
    make_output_folder(folder)
    what, remedy = "No folder for compiled code is yours alone", "Set XDG_CACHE_HOME to a folder of your own"
    with explained(ErrorCode.SYSTEM, what, remedy=remedy):
        use_private_caches()
    ready = pipeline.make_ready(loaded, recipe, Path.cwd(), reporter=reporter, must_fit=True)
    prepared = pipeline.prepare_model(ready, recipe, reporter=reporter)
    captured, report = pipeline.capture(prepared.ready, recipe, reporter=reporter)
    loaded = prepared.ready.loaded
    outcome = pipeline.compress(
        loaded, captured, report, recipe=recipe, output=folder, reporter=reporter, score=ready.score
    )
    phases = reporter.seconds_by_phase()
    result = msgspec.structs.replace(
        pipeline.with_change_reports(outcome.result, prepared), seconds=sum(phases.values()), phase_seconds=phases
    )
    result = pipeline.with_advice(result, recipe, captured.table)
    write_report(result, captured.table, folder)
    return CompileResult(result, folder, outcome.chosen)


def try_fixes(
    model: nn.Module,
    *,
    tracing_inputs: Iterable[object] | Callable[[], Iterable[object]],
    dims: dict[str, str] | None = None,
    rungs: Sequence[str] | None = None,
    controls: Sequence[tuple[str, str]] = (),
    device: str = "auto",
    on_event: Callable[[Event], None] = lambda _event: None,
) -> tuple[FixReport, ...]:
    """Try controls where the capture of ``model`` stops; give the ones that are green to `compile` as ``controls``.

    Changes of the source are tried by ``ace-studio fix``, which can load the model anew.

    Args:
        model: The module; it is put in eval mode and left as it is otherwise.
        tracing_inputs: Examples, or a function that gives them, as for `compile`.
        dims: ``{"x.0": "dynamic" | "static" | "auto"}`` overrides.
        rungs: Capture methods to try, in order.
        controls: Those that are in place already.
        device: ``auto``, ``cpu`` or ``cuda``.
        on_event: Is called with progress and findings as they come.

    Returns: What was tried, green ones first; nothing if the whole graph is captured.
    Raises: AceError with what, why, remedy and where.
    """
    put_in_eval_mode(_checked_module(model))
    tables: dict[str, dict[str, Any]] = {
        "inputs": {"dims": dims or {}},
        "capture": _capture_table(rungs, controls),
        "measure": {"device": device},
    }
    recipe = _recipe_of(tables, default=None, rules=())
    loaded = LoadedModel(module=model, source=Path(), sha256="", data=DataSources(tracing=_as_function(tracing_inputs)))
    reporter = Reporter(on_event, job="fix")
    return ranked_fixes(pipeline.fixes(loaded, recipe, Path.cwd(), reporter=reporter))


def _capture_table(rungs: Sequence[str] | None, controls: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The ``[capture]`` table of the keywords."""
    named = [{"function": function, "as": treatment} for function, treatment in controls]
    return {"rungs": None if rungs is None else list(rungs), "controls": named}


def _recipe_of(
    tables: dict[str, dict[str, Any]],
    *,
    default: str | None,
    rules: Sequence[tuple[str, str] | Mapping[str, Any]],
    grids: Mapping[str, Any] | None = None,
) -> Recipe:
    """The recipe of the keywords, checked like one from a file.

    Raises: AceError(USAGE) with every keyword that is wrong.
    """
    document: dict[str, Any] = {
        table: {key: value for key, value in values.items() if value is not None} for table, values in tables.items()
    }
    pair = ("match", "precision")
    document["plan"] = {
        "default": default or str(Precision.FP32),
        "rules": [dict(one) if isinstance(one, Mapping) else dict(zip(pair, one, strict=True)) for one in rules],
        "from_goal": default is None and not rules,
        **(grids or {}),
    }
    faults = recipe_faults(document | {"model": {"source": "a module"}})
    if faults:
        raise AceError(
            *(
                Problem(
                    code=ErrorCode.USAGE,
                    what=fault.what,
                    why=fault.why,
                    remedy=fault.remedy or "see the keywords of ace_studio.compile",
                    where=f"compile(), {fault.path[-1]}",
                )
                for fault in faults
            )
        )
    return msgspec.convert(document, Recipe)


def _data_words(data: object) -> str:
    """The evaluation data in the recipe: the path of a file, or a placeholder for live data."""
    if data is None:
        return ""
    return str(data) if isinstance(data, str | Path) else "evaluation_data"


def _checked_module(model: object) -> nn.Module:
    if isinstance(model, nn.Module):
        return model
    raise AceError.of(
        ErrorCode.USAGE,
        f"compile() was given {type(model).__name__} instead of a torch.nn.Module",
        remedy="Wrap a function in a module whose forward calls it.",
    )


def _as_function(
    inputs: Iterable[object] | Callable[[], Iterable[object]] | None,
) -> Callable[[], Iterable[object]] | None:
    if inputs is None or callable(inputs):
        return inputs
    # One tensor, one tuple of arguments or one dictionary is one example; iterating would take it apart.
    kept = inputs if isinstance(inputs, torch.Tensor | Mapping | tuple) else list(inputs)
    return lambda: kept


__all__ = ["CompileResult", "CompiledModule", "Example", "compile", "try_fixes"]
