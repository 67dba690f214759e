"""The calibration examples: read, put where the model is, and tried on the model before anything relies on them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.shapes.gather import list_of_examples
from ace_studio.records.errors import AceError, ErrorCode

WHERE = "[calibration] inputs"


def read_calibration(loaded: LoadedModel, captured: CapturedModel, *, samples: int) -> list[Example]:
    """At most ``samples`` examples on the model's device; the user's tracing examples if no data were given.

    Raises: AceError(NO_DATA) if there are none; AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if
        the model cannot take one of them.
    """
    if loaded.calibration is None:
        return list(captured.examples[: len(captured.examples) - len(captured.unseen)])
    try:
        values = list(itertools.islice(iter(list_of_examples(loaded.calibration())), samples))
    except AceError:  # it says the user's line already
        raise
    except Exception as error:
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"The calibration function raised {type(error).__name__}: {error}",
            why="it is called without arguments and must return an iterable of examples",
            remedy="Correct it; an example is a tuple (arguments), a dict (keyword arguments) or one tensor.",
            where=WHERE,
        ) from error
    if not values:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The calibration function gave no examples",
            why="activation ranges cannot be found without data",
            remedy="Return at least one example; 32 to 128 are usual.",
            where=WHERE,
        )
    device = captured.device
    examples = [Example.of(value).map_tensors(lambda leaf: leaf.to(device)) for value in values]
    _try_on_model(examples, captured)
    return examples


def _try_on_model(examples: Sequence[Example], captured: CapturedModel) -> None:
    """Run the first example of every form (shapes and types) through eager."""
    eager = EagerRun.of(captured.module)
    seen = set()
    for index, example in enumerate(examples):
        form = (len(example.args), *example.kwargs, *((tuple(one.shape), one.dtype) for one in example.tensors()))
        if form not in seen:
            seen.add(form)
            run_example(eager, example, label=f"calibration example {index + 1}")
