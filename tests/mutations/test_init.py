"""The table of mutations fits the source: each row applies, changes something, and leaves code that compiles."""

from pathlib import Path

import pytest

from tests.mutations.table import MUTATIONS, ROWS


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_applies_in_one_place_and_compiles(root: Path, name: str):
    mutation = MUTATIONS[name]
    text = mutation.mutated(root)
    assert text != (root / mutation.path).read_text(encoding="utf-8")
    compile(text, mutation.path, "exec")


def test_names_differ_and_named_tests_are_there(root: Path):
    assert len(MUTATIONS) == len(ROWS)
    missing = {test for row in ROWS for test in row.tests if not (root / "tests" / test.partition("::")[0]).exists()}
    assert missing == set()
