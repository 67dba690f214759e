"""Prunes and fine-tunes a copy of the model before the capture."""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from ace_studio.engine import evaluate
from ace_studio.engine.examples.forms import in_form_of
from ace_studio.engine.examples.reader import PAIR_FORMS, prepared, read_examples, split_pair, values_given_by
from ace_studio.engine.finetune import FinetuneJob, finetune_module
from ace_studio.engine.flow import Captured, Example, LoadedModel
from ace_studio.engine.pipeline.compress.metric import metric_of, samples_of
from ace_studio.engine.pipeline.frontends import FRONTENDS
from ace_studio.engine.pipeline.ready import ReadyModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.prune import Pruned, PruneJob, prune_module
from ace_studio.engine.prune.importance import TaylorData
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity, rule_matches
from ace_studio.records.recipes.recipe import FinetuneMethod, PruneMethod, Recipe
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport

MOST_BATCHES = 4096
"""Most batches that are read from the fine-tuning data, which may be an endless generator."""
WHERE_DATA = "[finetune] data"
_Batch = tuple[Example, Any]


@dataclass(frozen=True)
class Prepared:
    """The model to capture, and the reports of its pruning and fine-tuning."""

    ready: ReadyModel
    """``loaded.original`` is the user's own module if this one was changed."""
    pruning: PruningReport | None = None
    finetune: FinetuneReport | None = None


def _is_needed(recipe: Recipe) -> bool:
    """Whether the recipe asks for pruning or fine-tuning."""
    return recipe.prune.method is not PruneMethod.NONE or recipe.finetune.method is not FinetuneMethod.NONE


def prepare_model(ready: ReadyModel, recipe: Recipe, *, reporter: Reporter) -> Prepared:
    """Prune and fine-tune a copy if the recipe asks for it; the user's module is unchanged and remains the baseline.

    Raises: AceError, as `prune_module` and `finetune_module` say; AceError(UNSUPPORTED) for an ONNX file.
    """
    if not _is_needed(recipe):
        return Prepared(ready)
    loaded, workshop = ready.loaded, _Workshop(ready, recipe, reporter)
    module, pruning, masks = loaded.module, None, {}
    if recipe.prune.method is not PruneMethod.NONE:
        pruned = workshop.prune()
        module, pruning, masks = pruned.module, pruned.report, dict(pruned.masks)
        if (metric := workshop.metric_of(module, what="the pruned model")) is not None:
            pruning = msgspec.structs.replace(pruning, metric_after=metric)
    finetune = None
    if recipe.finetune.method is not FinetuneMethod.NONE:
        tuned = finetune_module(workshop.finetune_job(module, masks))
        module, finetune = tuned.module, tuned.report
        if pruning is None and not finetune.kept:
            return Prepared(ready, finetune=finetune)
    sha256 = loaded.sha256 and _other_hash(loaded.sha256, recipe)
    changed = replace(loaded, module=module, original=loaded.module, reference=None, sha256=sha256)
    return Prepared(replace(ready, loaded=changed), pruning, finetune)


def preview_pruning(ready: ReadyModel, recipe: Recipe, *, reporter: Reporter) -> PruningReport:
    """What pruning would remove, and its effect on outputs and metric; nothing is captured or built.

    Raises: AceError(RECIPE) if the recipe does not say how to prune; others as `prune_module` says.
    """
    if recipe.prune.method is PruneMethod.NONE:
        raise AceError.of(
            ErrorCode.RECIPE,
            "The recipe does not say what to prune",
            why="[prune] method is missing or 'none'",
            remedy='Write [prune] and below it method = "structured", "n:m" or "unstructured".',
            where="[prune] method",
        )
    workshop = _Workshop(ready, recipe, reporter)
    pruned = workshop.prune()
    return msgspec.structs.replace(
        pruned.report,
        metric_before=workshop.metric_of(ready.loaded.module, what="the original"),
        metric_after=workshop.metric_of(pruned.module, what="the pruned model"),
    )


def check_subgraphs(loaded: LoadedModel, captured: Captured) -> None:
    """Check that the weights of a model in subgraphs still fit the user's module, which its artifact needs.

    Raises: AceError(UNSUPPORTED) if channels were taken away from a model that could not be captured whole.
    """
    if loaded.original is None or captured.is_whole:
        return
    before, after = ([one.shape for one in module.parameters()] for module in (loaded.original, loaded.module))
    if before != after:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "A model in subgraphs cannot be built with fewer channels",
            why="Python runs between the subgraphs, so an artifact needs your module, and that has all its channels",
            remedy='Mend the breaks (`ace-studio fix`), or take method = "unstructured" or "n:m".',
            where="[prune] method",
        )


@dataclass(frozen=True)
class _Workshop:
    """Inputs that pruning, training and evaluation share."""

    ready: ReadyModel
    recipe: Recipe
    reporter: Reporter

    def __post_init__(self) -> None:
        if not FRONTENDS[self.ready.loaded.frontend].can_change_weights:
            raise AceError.of(
                ErrorCode.UNSUPPORTED,
                "An ONNX file cannot be pruned or trained",
                why="both need a module of torch with weights that can be changed",
                remedy="Open the model that the file was written from, or leave [prune] and [finetune] out.",
                where="[prune], [finetune]",
            )

    def prune(self) -> Pruned:
        taylor = TaylorData(batches=self.batches, loss=self.ready.loaded.data.finetune_loss)
        return prune_module(
            PruneJob(
                module=self.ready.loaded.module,
                choice=self.recipe.prune,
                examples=self.ready.examples,
                reporter=self.reporter,
                taylor=taylor,
            )
        )

    def finetune_job(self, module: nn.Module, masks: dict[str, torch.Tensor]) -> FinetuneJob:
        plan = self.recipe.plan
        metric = self._metric()
        return FinetuneJob(
            module=module,
            teacher=self.ready.loaded.module,
            choice=self.recipe.finetune,
            batches=self.batches(),
            reporter=self.reporter,
            loss=self.ready.loaded.data.finetune_loss,
            masks=masks,
            metric=None if metric is None else lambda call: self._measured(metric, call, what="the trained model"),
            higher_is_better=self.recipe.evaluate.is_higher_better,
            stays_high=lambda path, layer: _stays_high(plan, path, layer),
            per_channel=plan.weights is WeightGranularity.PER_CHANNEL,
        )

    def metric_of(self, module: nn.Module, *, what: str) -> float | None:
        metric = self._metric()
        if metric is None:
            return None
        self.reporter.phase(Phase.EVALUATE, what)
        return self._measured(metric, module, what=what)

    def _metric(self) -> Callable[..., Any] | None:
        here = Path()  # a job runs in the recipe's folder
        return metric_of(self.ready.loaded.data, self.recipe, here, batch=samples_of(self.ready.examples[0]))

    def _measured(self, metric: Callable[..., Any], call: Callable[..., Any], *, what: str) -> float:
        predict = evaluate.on_device(call, self.ready.device)

        def cancellable(*args: Any, **kwargs: Any) -> Any:
            self.reporter.check()
            return predict(*args, **kwargs)

        return evaluate.measure_score(metric, cancellable, what=what, higher_is_better=True).value

    def batches(self) -> list[_Batch]:
        """The training batches: the fine-tuning data, else the calibration data, else the tracing examples.

        Raises: AceError(BAD_INPUT) if a loss is given and a batch is no pair of input and label; AceError(NO_DATA) if
            there is none.
        """
        function, role, where, limit = self.ready.loaded.data.finetune, "fine-tuning", WHERE_DATA, MOST_BATCHES
        if function is None and self.ready.loaded.data.calibration is not None:
            function, role, where = self.ready.loaded.data.calibration, "calibration", "[calibration] inputs"
            limit = self.recipe.calibration.samples
        if function is None:
            return [(example, None) for example in self.ready.examples]
        if self.ready.loaded.data.finetune_loss is None:
            examples = read_examples(function, role=role, where=where, limit=limit, remedy="Return batches of inputs.")
            return [(self._placed(example), None) for example in examples]
        values = itertools.islice(values_given_by(function, role=role, where=where, forms=PAIR_FORMS), limit)
        pairs = [_pair(index, value) for index, value in enumerate(values)]
        if not pairs:
            what = "The fine-tuning data are empty"
            raise AceError.of(ErrorCode.NO_DATA, what, remedy=f"Give pairs; {PAIR_FORMS}.", where=where)
        placed = prepared(example for example, _ in pairs)
        return [
            (self._placed(example), _to(label, self.ready.device))
            for example, (_, label) in zip(placed, pairs, strict=True)
        ]

    def _placed(self, example: Example) -> Example:
        shaped = in_form_of(example, self.ready.examples[0], self.ready.loaded.module)
        return shaped.map_tensors(lambda leaf: leaf.to(self.ready.device))


def _pair(index: int, value: object) -> _Batch:
    pair = split_pair(value)
    if pair is not None:
        return pair
    raise AceError.of(
        ErrorCode.BAD_INPUT,
        f"_Batch {index + 1} of the fine-tuning data is no pair of input and label",
        why=f"it is {type(value).__name__}, and there is a loss",
        remedy=f"Give pairs; {PAIR_FORMS}.",
        where=WHERE_DATA,
    )


def _to(label: Any, device: torch.device) -> Any:
    return Example.of((label,)).map_tensors(lambda leaf: leaf.to(device)).args[0]


def _stays_high(plan: Plan, path: str, layer: nn.Module) -> bool:
    """Whether the plan gives a layer another precision than int8. Rules by op match nothing before the capture."""
    precision = Precision.INT8_STATIC if plan.from_goal else plan.default
    for rule in plan.rules:
        if rule_matches(rule.match, op_id="", op="", module=path, module_type=type(layer).__name__):
            precision = rule.precision
    return precision not in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)


def _other_hash(sha256: str, recipe: Recipe) -> str:
    """The hash of the changed model."""
    digest = hashlib.sha256(sha256.encode())
    for part in (recipe.prune, recipe.finetune, recipe.calibration, recipe.plan):
        digest.update(msgspec.json.encode(part, order="deterministic"))
    return digest.hexdigest()
