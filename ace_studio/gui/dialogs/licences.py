"""The licences of ACE Studio, of the packages that it runs on, and of the data that it ships."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

OWN = "ace-studio"
NOT_SHIPPED = {"test"}
"""Extras that are for developers."""
SHIPPED_DATA = (
    "Icons: drawn for ACE Studio, under its own licence.\nFonts: none; the window uses those of the system.\n"
    "The example: the handwritten digits that scikit-learn brings (UCI, E. Alpaydin and C. Kaynak, 1998, CC BY 4.0)."
)
_BY_TEXT = {
    "Apache License": "Apache-2.0",
    "Permission is hereby granted, free of charge": "MIT",
    "Redistribution and use in source and binary forms": "BSD",
}
"""Words of a licence's text -> its name, where the package does not name it."""


@dataclass(frozen=True)
class Licence:
    """The licence of one installed package."""

    package: Distribution

    @property
    def title(self) -> str:
        """Name, version and licence."""
        return f"{self.package.name} {self.package.version}: {self.name or 'unknown'}"

    @property
    def name(self) -> str:
        """The licence as the package or its text names it; empty if neither does."""
        facts = self.package.metadata
        classes = [line.rpartition("::")[2].strip() for line in facts.get_all("Classifier", []) if "License ::" in line]
        said = "".join((facts.get_all("License-Expression") or facts.get_all("License") or [])[:1])
        if said and "\n" not in said and len(said) < 120:
            return said
        return ", ".join(classes) or next((name for words, name in _BY_TEXT.items() if words in self.text), "")

    @property
    def text(self) -> str:
        """The texts that the package brings, or where to find them."""
        files = [file for file in self.package.files or () if re.search(r"licen[cs]e|copying|notice", file.name, re.I)]
        texts = [Path(str(file.locate())).read_text(encoding="utf-8", errors="replace") for file in files[:40]]
        if self.package.name == OWN and not texts:
            texts = [(Path(__file__).parents[3] / "LICENSE").read_text(encoding="utf-8")]
        pages = (*self.package.metadata.get_all("Project-URL", []), *self.package.metadata.get_all("Home-page", []))
        return "\n\n".join(texts) or "\n".join(["The package brings no text of its licence.", *pages])


def licences() -> list[Licence]:
    """ACE Studio first, then every installed package that it needs, directly or not, by name."""
    found: dict[str, Distribution] = {}
    waiting = [OWN]
    while waiting:
        name = waiting.pop()
        if name.casefold() not in found:
            try:
                package = found[name.casefold()] = distribution(name)
            except PackageNotFoundError:
                continue
            waiting += _needs(package, with_extras=name == OWN)
    unique = {package.name.casefold(): package for package in found.values()}
    own = unique.pop(OWN, None)
    return [Licence(package) for package in ([own] if own else []) + [unique[name] for name in sorted(unique)]]


def _needs(package: Distribution, *, with_extras: bool) -> Iterator[str]:
    for line in package.requires or ():
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        name = re.match(r"[\w.-]+", line)
        is_wanted = extra is None or (with_extras and extra[1] not in NOT_SHIPPED)
        if name is not None and is_wanted:
            yield name[0]
