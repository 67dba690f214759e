"""One mutation: a small change of the source that a careless edit could make, and the tests that should notice it."""

from pathlib import Path
from typing import NamedTuple


class Mutation(NamedTuple):
    """A text of the source and what is written in its place."""

    name: str
    path: str
    """Relative to the root of the checkout."""
    old: str
    """Must be in the file exactly once."""
    new: str
    tests: tuple[str, ...]
    """Files, folders or tests to run, below ``tests``; those that are most likely to fail come first."""
    harm: str
    """What would go wrong for a user."""

    def mutated(self, root: Path) -> str:
        """The text of the file with the mutation. Raises: ValueError if the old text is not there exactly once."""
        text = (root / self.path).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {text.count(self.old)} places in {self.path} have the text {self.old!r}")
        return text.replace(self.old, self.new)
