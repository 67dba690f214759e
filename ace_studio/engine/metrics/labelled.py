"""Built-in metrics on labelled data, called with ``predict`` like an evaluation function of the user."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from ace_studio.engine.examples.arrays import LABEL_NAMES
from ace_studio.engine.examples.leaves import positions_below, tensor_paths
from ace_studio.engine.examples.reader import PAIR_FORMS, split_pair, values_given_by
from ace_studio.engine.flow import Example
from ace_studio.engine.metrics.kinds import IGNORED_LABEL, METRICS, Metric
from ace_studio.engine.metrics.score import Score
from ace_studio.records.errors import AceError, ErrorCode

_WHERE = "[evaluate] data"
MOST_KEPT_VALUES = 2_000_000
"""Values of all outputs together that are kept per model, to compare two models sample by sample."""
INPUT_NAMES = ("inputs", "input", "x")
_T = TypeVar("_T")


@dataclass(frozen=True)
class LabelledCall:
    """One call of the model, with one label per sample of the batch."""

    example: Example
    labels: Tensor | None
    samples: int | None = None
    """Samples that count, the first ones of the batch; None: all."""


@dataclass
class LabelledMetric:
    """``metric(predict) -> Score``. The data are read again for every model, so they may be a generator."""

    metric: Metric
    calls: Callable[[], Iterable[LabelledCall]]
    output: str = ""
    """Path of the output that is judged; empty: the first tensor."""

    def __call__(self, predict: Callable[..., Any]) -> Score:
        """Run the model on all data.

        Raises: AceError(NO_DATA or BAD_INPUT) if there are no data, or they do not fit the model or the metric.
        """
        outputs: list[Tensor] = []
        labels: list[Tensor] = []
        for call in self.calls():
            output = self._judged_output(call.example.copied().call(predict)).detach().cpu()
            label = call.labels if call.labels is not None else self._next_tokens(call.example)
            output, label = _by_sample(output, label[: call.samples] if call.samples else label)
            if self.metric.parts is not None:
                output = self._explained(self.metric.parts, output, label)
            outputs.append(output)
            labels.append(label)
        if not outputs:
            raise AceError.of(ErrorCode.NO_DATA, "The evaluation data are empty", remedy=f"Give samples; {PAIR_FORMS}.",
                              where=_WHERE)  # fmt: skip
        return self._score(outputs, labels)

    def _judged_output(self, outputs: object) -> Tensor:
        found = tensor_paths(outputs)
        paths = [path for path, _ in found]
        chosen = positions_below(paths, self.output) if self.output else list(range(len(found)))
        if not chosen:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"The model has no output '{self.output}'" if self.output else "The model gives no tensor",
                why=f"its outputs are {', '.join(paths) or 'no tensors'}",
                remedy="Name one of them as output.",
                where="[evaluate] output",
            )
        return found[chosen[0]][1]

    def _next_tokens(self, example: Example) -> Tensor:
        """The next token at every position of the first integer input; the last position has none."""
        if self.metric.needs_labels:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"The evaluation data have no labels, and {self.metric.name} needs them",
                remedy=f"Give pairs; {PAIR_FORMS}.",
                where=_WHERE,
            )
        tokens = next((one for one in example.tensors() if not one.is_floating_point() and one.ndim == 2), None)
        if tokens is None or tokens.shape[1] < 2:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                "The evaluation data have no labels, and no input is a text of tokens [batch, length]",
                remedy="Give pairs of inputs and the tokens that should follow.",
                where=_WHERE,
            )
        following = torch.full_like(tokens, IGNORED_LABEL)
        following[:, :-1] = tokens[:, 1:]
        return following

    def _explained(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """``function(*arguments)``; data that do not fit become AceError(BAD_INPUT)."""
        try:
            return function(*arguments)
        except (ValueError, RuntimeError, IndexError) as error:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"{self.metric.name} cannot be measured on these data",
                why=str(error).partition("\n")[0],
                remedy="Check the labels, or choose another output or metric.",
                where="[evaluate] metric",
            ) from error

    def _score(self, outputs: list[Tensor], labels: list[Tensor]) -> Score:
        if self.metric.of_parts is not None:
            return self._explained(self.metric.of_parts, torch.cat(outputs))
        score = self._explained(lambda: self.metric.measure(_joined(outputs, 0.0), _joined(labels, IGNORED_LABEL)))
        words = tuple(str(one.item()) for sample in labels for one in sample) if _are_single(labels) else ()
        is_small = sum(batch.numel() for batch in outputs) <= MOST_KEPT_VALUES
        kept = (sample.reshape(-1).double().numpy() for batch in outputs for sample in batch if is_small)
        return Score(**{**vars(score), "labels": words, "outputs": tuple(kept)})


def labelled_metric(name: str, read: Callable[[], Iterable[object]], *, output: str = "") -> LabelledMetric:
    """The metric of this name on the pairs of inputs and labels that ``read`` yields."""
    return LabelledMetric(METRICS[name], lambda: _pairs(read, METRICS[name]), output)


def metric_of_arrays(
    name: str, arrays: Mapping[str, Tensor], *, batch: int, output: str = "", where: str = _WHERE
) -> LabelledMetric:
    """The metric of this name on a file's arrays: inputs by the names of forward's arguments, and ``labels``.

    Args:
        name: A row of `METRICS`.
        arrays: Name -> values, one per sample along the first dimension.
        batch: Samples per call; the last call repeats its last sample, and surplus outputs are cut.
        output: Path of the output that is judged.
        where: Place that problems name.

    Raises: AceError(BAD_INPUT) if there are no inputs, no labels, or they are not equally many.
    """
    inputs = {key: value for key, value in arrays.items() if key not in LABEL_NAMES}
    labels = next((arrays[key] for key in LABEL_NAMES if key in arrays), None)
    sizes = {key: len(value) if value.ndim else 0 for key, value in arrays.items()}
    if not inputs or (labels is None and METRICS[name].needs_labels):
        missing = "inputs" if not inputs else "labels"
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The evaluation file has no {missing}",
            why=f"it has {', '.join(arrays) or 'nothing'}",
            remedy="Save the inputs under the names of forward's arguments, and the labels as 'labels'.",
            where=where,
        )
    if len(set(sizes.values())) != 1:
        listed = ", ".join(f"{key} {size}" for key, size in sizes.items())
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The arrays of the evaluation file are not equally long: {listed}",
            remedy="Give one row per sample in every array.",
            where=where,
        )
    return LabelledMetric(METRICS[name], lambda: _calls_of_arrays(inputs, labels, batch), output)


def _calls_of_arrays(inputs: Mapping[str, Tensor], labels: Tensor | None, batch: int) -> Iterator[LabelledCall]:
    """Batches of exactly ``batch`` samples, for models that take no other size; surplus samples have no labels."""
    count = len(next(iter(inputs.values())))
    is_single = len(inputs) == 1 and next(iter(inputs)) in INPUT_NAMES
    for start in range(0, count, batch):
        rows = torch.arange(start, start + batch).clamp(max=count - 1)
        taken = {name: values[rows] for name, values in inputs.items()}
        example = Example(args=tuple(taken.values())) if is_single else Example(kwargs=taken)
        expected = labels[start : start + batch] if labels is not None else None
        yield LabelledCall(example, expected, samples=min(batch, count - start))


def _pairs(read: Callable[[], Iterable[object]], metric: Metric) -> Iterator[LabelledCall]:
    for value in values_given_by(read, role="evaluation data", where=_WHERE, forms=PAIR_FORMS):
        yield _pair(value, metric)


def _pair(value: object, metric: Metric) -> LabelledCall:
    pair = split_pair(value)
    if pair is not None and isinstance(pair[1], Tensor | int | float | list):
        return LabelledCall(pair[0], torch.as_tensor(pair[1]))
    if not metric.needs_labels:
        return LabelledCall(Example.of(value), None)
    raise AceError.of(
        ErrorCode.BAD_INPUT,
        f"The evaluation data give {type(value).__name__} instead of a pair",
        remedy=f"Give pairs; {PAIR_FORMS}.",
        where=_WHERE,
    )


def _by_sample(outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [n, ...] and labels [n, ...] of the same samples; surplus outputs at the end are cut.

    Raises: AceError(BAD_INPUT) if there are more labels than outputs.
    """
    if outputs.ndim == 0 or (labels.ndim == 0 and len(outputs) != 1):
        outputs = outputs.unsqueeze(0)  # one sample without a batch
    labels = labels.reshape(1) if labels.ndim == 0 else labels
    if len(labels) > len(outputs):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The model gives {len(outputs)} answers for {len(labels)} labels",
            why=f"outputs {tuple(outputs.shape)}, labels {tuple(labels.shape)}",
            remedy="Give one label per sample of the batch.",
            where=_WHERE,
        )
    return outputs[: len(labels)], labels


def _joined(batches: list[Tensor], filler: float) -> Tensor:
    """All samples in one tensor; positions that a shorter sample lacks hold ``filler``.

    Raises: ValueError if samples that are numbers, not classes, differ in size.
    """
    shapes = {tuple(batch.shape[1:]) for batch in batches}
    if len(shapes) == 1:
        return torch.cat(batches)
    if len({len(shape) for shape in shapes}) != 1:
        raise ValueError(f"samples have different numbers of dimensions: {sorted(shapes)[:4]}")
    largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
    if filler and batches[0].is_floating_point():
        raise ValueError("the labels of the samples are of different sizes")
    padded = []
    for batch in batches:
        whole = batch.new_full((len(batch), *largest), filler)
        whole[tuple(slice(0, size) for size in batch.shape)] = batch
        padded.append(whole)
    return torch.cat(padded)


def _are_single(labels: list[Tensor]) -> bool:
    return all(one.ndim == 1 or one[0].numel() == 1 for one in labels)
