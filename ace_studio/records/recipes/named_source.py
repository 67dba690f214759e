"""Models of installed packages, by name: ``timm:resnet18``, ``torchvision:fasterrcnn_resnet50_fpn``."""

import re
from dataclasses import dataclass
from pathlib import Path

COLLECTIONS = ("timm", "torchvision")
"""Packages whose models can be named; each is a row of the engine's registry of loaders."""
_PATTERN = re.compile(rf"({'|'.join(COLLECTIONS)}):([\w.\-]+)(?:\?num_classes=([1-9]\d*))?")


@dataclass(frozen=True)
class NamedSource:
    """A model of an installed package."""

    collection: str
    model: str
    classes: int = 0
    """How many classes it tells apart; 0 for as many as the package's weights do."""

    @property
    def text(self) -> str:
        """As the recipe writes it."""
        return f"{self.collection}:{self.model}" + (f"?num_classes={self.classes}" if self.classes else "")


def named_source(source: str | Path) -> NamedSource | None:
    """The model that the last part of a path names; None if it names none or the path exists."""
    path = Path(source)
    match = _PATTERN.fullmatch(path.name)
    return NamedSource(match[1], match[2], int(match[3] or 0)) if match and not path.exists() else None
