"""Examples of a whole model at unseen sizes, chosen without a graph that tells which sizes are tied."""

from typing import Any

from ace_studio.engine.capture.reference import EagerReference
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import example_at, free_places, unseen_sizes

_MOST_EXAMPLES = 2
_MOST_TRIES = 6


def unseen_examples(reference: EagerReference) -> list[tuple[Example, Any]]:
    """At most two examples at new sizes that eager accepts, with their results.

    Dimensions with equal sizes in all examples get equal new sizes, because they may be tied.
    """
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for leaf, dim in free_places(reference.inputs):
        groups.setdefault(reference.inputs[leaf].sizes[dim], []).append((leaf, dim))
    choices = {sizes: list(unseen_sizes(sizes)) for sizes in groups}
    known = [example.shapes() for example in reference.examples]
    found: list[tuple[Example, Any]] = []
    for attempt in range(_MOST_TRIES if groups else 0):
        sizes = {
            place: choices[alike][min(attempt, len(choices[alike]) - 1)] for alike in groups for place in groups[alike]
        }
        example = example_at(reference.tracing, sizes)
        if len(found) == _MOST_EXAMPLES or example.shapes() in known:
            continue
        known.append(example.shapes())
        if (result := reference.eager.output_if_accepted(example)) is not None:
            found.append((example, result))
    return found
