"""The calibration examples: read, put where the model is, and tried on the model before anything relies on them."""

from __future__ import annotations

from collections.abc import Sequence

from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.data_files import choose_indices
from ace_studio.engine.example_reader import read_examples
from ace_studio.engine.flow import Captured, Example, LoadedModel
from ace_studio.engine.shapes.forms import in_form_of
from ace_studio.records.recipe import Subset

WHERE = "[calibration] inputs"


MOST_READ = 4096
"""So many examples of a function are read at most if not simply the first ones are wanted; it may have no end."""


def read_calibration(
    loaded: LoadedModel, captured: Captured, *, samples: int, subset: Subset = Subset.FIRST
) -> list[Example]:
    """At most ``samples`` examples on the model's device; the user's tracing examples if no data were given.

    ``subset`` says which, if there are more.

    Raises: AceError(NO_DATA) if there are none; AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if
        the model cannot take one of them.
    """
    if loaded.calibration is None:
        return list(captured.examples[: len(captured.examples) - len(captured.unseen)])
    values = read_examples(
        loaded.calibration,
        role="calibration",
        where=WHERE,
        limit=samples if subset is Subset.FIRST else max(samples, MOST_READ),
        remedy="Return at least one example, for activation ranges to be found on; 32 to 128 are usual.",
    )
    device = captured.device
    values = tuple(values[index] for index in choose_indices(len(values), samples=samples, subset=subset))
    examples = [
        in_form_of(value, captured.example, captured.module).map_tensors(lambda leaf: leaf.to(device))
        for value in values
    ]
    _try_on_model(examples, captured)
    return examples


def _try_on_model(examples: Sequence[Example], captured: Captured) -> None:
    """Run the first example of every form (shapes and types) through eager."""
    eager = EagerRun.of(captured.module)
    seen = set()
    for index, example in enumerate(examples):
        form = (len(example.args), *example.kwargs, *((tuple(one.shape), one.dtype) for one in example.tensors()))
        if form not in seen:
            seen.add(form)
            run_example(eager, example, label=f"calibration example {index + 1}")
