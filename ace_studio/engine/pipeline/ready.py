"""A loaded model made ready: on its device, with the examples to trace it with.

The sizes that calibration and evaluation use are read before anything is captured, beside those of the examples.
A graph is free only in dimensions in which examples differ, and every target would refuse other sizes, one by one.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from ace_studio.engine import evaluate
from ace_studio.engine.capture.cache import Shapes
from ace_studio.engine.environment import choose_device
from ace_studio.engine.examples.fitting import inputs_alone
from ace_studio.engine.examples.forms import in_form_of
from ace_studio.engine.examples.gather import gather_examples, with_calibration_data
from ace_studio.engine.examples.leaves import dtype_name, forward_parameters, named_leaves
from ace_studio.engine.examples.reader import limit_examples
from ace_studio.engine.examples.wanted import wanted_inputs
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.flow.plain_tensors import check_plain
from ace_studio.engine.load import check_translation, read_named_content, read_tensor
from ace_studio.engine.metrics import Score
from ace_studio.engine.metrics.labelled import LabelledMetric
from ace_studio.engine.pipeline.compress.calibration import WatchedMetric, chosen_values
from ace_studio.engine.pipeline.compress.metric import metric_of, samples_of
from ace_studio.engine.pipeline.frontends import FRONTENDS
from ace_studio.engine.pipeline.half_models import at_fp32
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.shapes import example_at
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase, SizesWanted
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import InputsChoice, Recipe, ShapesFrom
from ace_studio.records.results import Baseline
from ace_studio.records.tensors import DimChoice, TensorSpec


@dataclass(frozen=True)
class ReadyModel:
    """A model and the user's examples, on one device."""

    loaded: LoadedModel
    examples: tuple[Example, ...]
    device: torch.device
    score: Score | None = None
    """The metric of the user's model, if reading the sizes of the data took a whole evaluation."""


def make_ready(
    loaded: LoadedModel, recipe: Recipe, folder: Path, *, reporter: Reporter | None = None, must_fit: bool = False
) -> ReadyModel:
    """Move the model to the recipe's device, gather its examples there, and bind its calibration file to them.

    On the CPU, a model with 16-bit weights becomes one at fp32.

    Args:
        loaded: The model and its data sources.
        recipe: ``[inputs]``, ``[calibration]`` and ``[measure] device`` count.
        folder: Folder that the recipe's paths are relative to.
        reporter: Hears of progress and warnings.
        must_fit: Whether the data must do for a run: sizes that the examples do not cover, and a goal for the metric
            without one, are errors.

    Raises: AceError, as `gather_examples` and `with_sizes_of_data` say; AceError(NO_DATA) if there is no metric;
        AceError(WRONG_CAPTURE) if a translated TorchScript program differs.
    """
    reporter = reporter or Reporter()
    limit_examples(recipe.limits.examples)
    if must_fit:
        _check_metric(loaded, recipe)
    device = choose_device(recipe.measure.device if FRONTENDS[loaded.frontend].can_leave_the_cpu else "cpu")
    _check_names(loaded.module)
    own = itertools.chain(loaded.module.named_parameters(), loaded.module.named_buffers())
    check_plain(own, "The model has", code=ErrorCode.USER_CODE, kinds=("meta",))
    loaded.module.to(device)
    with torch.no_grad():
        gathered = gather_examples(loaded, recipe, folder, read_tensor=read_tensor, read_content=read_named_content)
        for number, one in enumerate(gathered, start=1):
            tensors = ((f"tensor {at}", leaf) for at, leaf in enumerate(one.tensors()))
            check_plain(tensors, f"Example {number} holds", code=ErrorCode.BAD_INPUT, where="[inputs]")
        examples = tuple(example.map_tensors(lambda leaf: leaf.to(device)) for example in gathered)
        if device.type == "cpu" and loaded.frontend == "torch":
            loaded, examples = at_fp32(loaded, examples, reporter)
        check_translation(loaded, examples)
        if loaded.data.evaluate is not None:
            loaded = loaded.with_data(evaluate=WatchedMetric(loaded.data.evaluate))
        score = None
        takes_data = recipe.inputs.shapes_from is ShapesFrom.DATA
        if (must_fit or takes_data) and loaded.frontend == "torch" and not recipe.capture.batch_only:
            examples, score = with_sizes_of_data(loaded, examples, recipe, folder, reporter)
    loaded = with_calibration_data(loaded, examples, recipe, read_content=read_named_content)
    return ReadyModel(loaded, examples, device, score)


def _check_metric(loaded: LoadedModel, recipe: Recipe) -> None:
    has_metric = loaded.data.evaluate is not None or loaded.data.labelled is not None or recipe.evaluate.data
    if recipe.goal.max_drop is not None and not has_metric:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The goal limits the drop of the metric, but there is no metric",
            why="[goal] max_drop needs a metric, and [evaluate] names neither a function nor a metric with data",
            remedy="Name one of them in [evaluate], or use min_sqnr_db, which needs no labels.",
            where="[goal] max_drop",
        )


def _check_names(module: nn.Module) -> None:
    names = (name for name, _ in itertools.chain(module.named_modules(), module.named_buffers()))
    if bad := next((name for name in names if not name.isprintable()), ""):
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"A part of the model has a name that no graph can hold: {bad!a}",
            why="it has a line break, a control character or half a character in it",
            remedy="Name modules and buffers with letters, digits and underscores.",
        )


_MOST_NAMED = 6
"""Sizes of one dimension that a message names."""


def with_sizes_of_data(
    loaded: LoadedModel, examples: tuple[Example, ...], recipe: Recipe, folder: Path, reporter: Reporter
) -> tuple[tuple[Example, ...], Score | None]:
    """The examples, with more at the sizes of the data if ``[inputs] shapes_from`` says so.

    Returns: The examples, and the metric of the original if a function of the user had to be run for the sizes.
    Raises: AceError(RECIPE) with the rows to add, if most calibration examples or any call of the metric have a size
        that no graph of these examples takes.
    """
    reader = _Reader(loaded, examples, recipe, reporter)
    takes_data = recipe.inputs.shapes_from is ShapesFrom.DATA
    calibration = reader.calibration() if takes_data or recipe.needs_ranges else Counter[Shapes]()
    evaluation, score = reader.evaluation(folder)
    if not takes_data:
        calibration, evaluation = reader.unusable(calibration), reader.missed(evaluation)
    known = {example.shapes() for example in examples}
    wanted = [one for one in representative(calibration + evaluation) if one not in known]
    if not reader.missed(Counter(wanted)):
        return examples, score
    if takes_data:
        made = (example_at(examples[0], _places(shapes)) for shapes in wanted)
        return (*examples, *made), score
    given = () if recipe.inputs.rows else tuple(dict.fromkeys(example.shapes() for example in examples))
    rows = tuple(reader.row(shapes) for shapes in (*given, *wanted))
    reporter.emit(SizesWanted(job=reporter.job, rows=rows))
    users = " and ".join(word for word, found in (("calibration", calibration), ("evaluation", evaluation)) if found)
    raise AceError.of(
        ErrorCode.RECIPE,
        f"The examples do not cover the sizes of the data for {users}",
        why="; ".join(reader.differences(wanted)) + "; only sizes that differ between examples stay free",
        remedy=_remedy(loaded, recipe, rows),
        where="[inputs]",
    )


def representative(counts: Counter[Shapes]) -> list[Shapes]:
    """The smallest, the most frequent and the largest call, and those with the extremes of every dimension."""
    by_size = sorted(counts, key=lambda shapes: sum(map(prod, shapes)))
    chosen = [by_size[0], counts.most_common(1)[0][0], by_size[-1]] if by_size else []
    for leaf, dim in _places(by_size[0]) if by_size else ():
        for extreme in (min, max):
            found = extreme(by_size, key=lambda shapes: shapes[leaf][dim])
            if all(one[leaf][dim] != found[leaf][dim] for one in chosen):
                chosen.append(found)
    return [shapes for shapes in by_size if shapes in chosen]


class _Reader:
    """Reads the sizes of data that are nested like the examples; others are said to be wrong where they are used."""

    def __init__(self, loaded: LoadedModel, examples: Sequence[Example], recipe: Recipe, reporter: Reporter) -> None:
        self._loaded, self._examples, self._recipe, self._reporter = loaded, examples, recipe, reporter
        self._inputs = wanted_inputs(loaded.module, examples, recipe)

    def calibration(self) -> Counter[Shapes]:
        """How often each shape occurs in the calibration data; nothing of a folder of images, which are resized."""
        path = self._loaded.data.calibration_path
        if path is not None and path.is_dir():
            return Counter()
        names = [f"{one.name}.{dim}" for one in self._inputs for dim in range(one.template.dim())]
        any_size = replace(self._recipe.inputs, dims=dict.fromkeys(names, DimChoice.DYNAMIC))
        recipe = replace(self._recipe, inputs=any_size)
        data = with_calibration_data(self._loaded, self._examples, recipe, read_content=read_named_content).data
        function, choice = data.calibration, recipe.calibration
        if function is None:
            return Counter()
        self._reporter.phase(Phase.CALIBRATE, "reading the sizes of the examples")
        return self._counted(lambda: chosen_values(function, samples=choice.samples, subset=choice.subset)) or Counter()

    def evaluation(self, folder: Path) -> tuple[Counter[Shapes], Score | None]:
        """How often the metric calls with each shape, and its value if a function of the user had to be run."""
        data, found = self._loaded.data, Counter[Shapes]()
        metric = data.evaluate
        if metric is None:
            if not self._recipe.measure.decode.token:  # a step of a decoder reads the texts token by token
                found = self._counted(lambda: self._labelled_calls(folder)) or found
            return found, None
        self._reporter.phase(Phase.EVALUATE, f"{Baseline().name}, and the sizes that it is called with")
        device = next((one.device for one in self._examples[0].tensors()), torch.device("cpu"))
        call = evaluate.on_device(self._loaded.module, device)

        def predict(*args: Any, **kwargs: Any) -> Any:
            self._reporter.check()
            found.update(self._shapes([Example(args, kwargs)]))
            return call(*args, **kwargs)

        better = self._recipe.evaluate.is_higher_better
        try:
            return found, evaluate.measure_score(metric, predict, what=Baseline().name, higher_is_better=better)
        except Cancelled:
            raise
        except AceError:
            return Counter(), None  # it is run again after the capture and says what is wrong

    def _labelled_calls(self, folder: Path) -> Iterator[Example]:
        metric = metric_of(self._loaded.data, self._recipe, folder, batch=samples_of(self._examples[0]))
        if isinstance(metric, LabelledMetric):
            yield from (call.example for call in metric.calls())

    def _counted(self, read: Callable[[], Iterable[object]]) -> Counter[Shapes] | None:
        """None if the data cannot be read: the step that needs them says why."""
        try:
            return Counter(self._shapes(map(Example.of, read())))
        except Cancelled:
            raise
        except AceError:
            return None

    def _shapes(self, calls: Iterable[Example]) -> Iterator[Shapes]:
        form, module = self._examples[0], self._loaded.module
        ranks = [one.template.dim() for one in self._inputs]
        for call in calls:
            self._reporter.check()
            shapes = in_form_of(inputs_alone(call, form, module), form, module).shapes()
            if [len(shape) for shape in shapes] == ranks:
                yield shapes

    def missed(self, counts: Counter[Shapes]) -> Counter[Shapes]:
        """Those of which some size is held fixed at another one."""
        return Counter({shapes: count for shapes, count in counts.items() if any(self._held(shapes))})

    def unusable(self, calibration: Counter[Shapes]) -> Counter[Shapes]:
        """The calibration data if fewer than half would be used: the others are left out, or only cut in batches."""
        is_cut = len({tuple(shape[1:] for shape in shapes) for shapes in calibration}) == 1
        missed = self.missed(calibration)
        if is_cut and not any(dim for shapes in missed for _, dim in self._held(shapes)):
            return Counter()
        return missed if 2 * missed.total() > calibration.total() else Counter()

    def _held(self, shapes: Shapes) -> Iterator[tuple[int, int]]:
        """Tensor and dimension of every size that the examples hold at another one."""
        for leaf, (one, shape) in enumerate(zip(self._inputs, shapes, strict=True)):
            for dim, size in enumerate(shape):
                if dim not in one.free and size != one.template.shape[dim]:
                    yield leaf, dim

    def differences(self, wanted: Sequence[Shapes]) -> Iterator[str]:
        """``x.0 is 7, 32 there and 1 in the examples``, for every dimension."""
        for leaf, dim in dict.fromkeys(place for shapes in wanted for place in self._held(shapes)):
            sizes = ", ".join(map(str, sorted({shapes[leaf][dim] for shapes in wanted})[:_MOST_NAMED]))
            one = self._inputs[leaf]
            yield f"{one.name}.{dim} is {sizes} there and {one.template.shape[dim]} in the examples"

    def row(self, shapes: Shapes) -> dict[str, TensorSpec]:
        """A row of the shape table with these shapes, and values such as those of the first row or example."""
        waiting, first = iter(shapes), self._recipe.inputs.rows[0] if self._recipe.inputs.rows else {}
        row = {}
        for leaf in named_leaves(self._examples[0], forward_parameters(self._loaded.module)):
            spec = first.get(leaf.name) or _spec_of(leaf.value)
            row[leaf.name] = spec if leaf.tensor is None else replace(spec, shape=next(waiting))
        return row


def _places(shapes: Shapes) -> dict[tuple[int, int], int]:
    """Tensor and dimension -> size."""
    return {(leaf, dim): size for leaf, shape in enumerate(shapes) for dim, size in enumerate(shape)}


def _spec_of(value: object) -> TensorSpec:
    """What a row says of a value of an example; numbers are made up within its range."""
    if not isinstance(value, Tensor):
        return TensorSpec(shape=(), values="none" if value is None else f"value {value!r}")
    values = "random"
    if value.numel() and not value.is_floating_point() and not value.is_complex() and value.dtype != torch.bool:
        low, high = int(value.min()), int(value.max())
        values = f"constant {low}" if low == high else f"random {low}..{high}"
    return TensorSpec(shape=tuple(value.shape), dtype=dtype_name(value), values=values)


def _remedy(loaded: LoadedModel, recipe: Recipe, rows: Sequence[dict[str, TensorSpec]]) -> str:
    if loaded.source == Path():
        made = (
            ", ".join(
                f'"{name}": torch.zeros({list(spec.shape)}, dtype=torch.{spec.dtype})' for name, spec in row.items()
            )
            for row in rows
        )
        return 'Write shapes_from="data", or add examples of these sizes to tracing_inputs:\n' + "\n".join(
            f"{{{words}}}," for words in made
        )
    instead = "" if recipe.inputs.rows else ", instead of the examples that it has now"
    text = recipe_text(Recipe(inputs=InputsChoice(rows=tuple(rows)))).partition("[[inputs")
    return (
        'Write shapes_from = "data" in [inputs] (or --shapes-from data), or add these rows to the recipe'
        f"{instead}:\n\n{text[1]}{text[2]}"
    )
