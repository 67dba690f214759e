"""Examples are varied in their values alone."""

import torch

from ace_studio.engine.fixes import varied
from ace_studio.engine.flow import Example


def by_label(*tensors: torch.Tensor) -> dict[str, list[torch.Tensor]]:
    return {variation.label: list(made.tensors()) for variation, made in varied(Example.of(tensors))}


def test_shapes_and_types_are_kept():
    given = (torch.rand(2, 3), torch.arange(4), torch.tensor([True, False]))
    for tensors in by_label(*given).values():
        assert [(one.shape, one.dtype) for one in tensors] == [(one.shape, one.dtype) for one in given]


def test_integers_change_in_one_variation_only_and_stay_in_their_range():
    ids = torch.arange(50)
    changed = {label: tensors[1] for label, tensors in by_label(torch.rand(3), ids).items()}
    (label,) = [label for label, tensor in changed.items() if not torch.equal(tensor, ids)]
    assert int(changed[label].min()) >= 0 and int(changed[label].max()) <= 49


def test_booleans_are_inverted():
    made = by_label(torch.tensor([True, False]))
    assert [tensors[0].tolist() for tensors in made.values()] == [[False, True]]


def test_a_variation_that_changes_nothing_is_left_out():
    assert by_label(torch.zeros(0)) == {}
    labels = by_label(torch.zeros(3))
    assert "zeros" not in labels and "opposite signs" not in labels


def test_the_same_example_is_varied_in_the_same_way():
    first, second = (by_label(torch.arange(9.0)) for _ in range(2))
    assert all(torch.equal(first[label][0], second[label][0]) for label in first)
