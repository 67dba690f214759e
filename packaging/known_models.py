"""Writes the table of names and shapes of the models in timm and torchvision, for the packages that are installed.

``.venv/bin/python packaging/known_models.py``
"""

from __future__ import annotations

import json
import sys

from ace_studio.engine.load.named.fits import MOST_NAMED, TABLE, hash_of
from ace_studio.engine.load.named.loader import tensors_of
from ace_studio.engine.load.named.models import find_model, list_names
from ace_studio.records.recipes.named_source import NamedSource


def write_table() -> None:
    """Build every model with shapes alone, and write the table."""
    table: dict[str, list[str]] = {}
    for collection in ("torchvision", "timm"):
        for name in list_names(collection):
            try:
                module = find_model(NamedSource(collection, name)).build_on_meta()
            except Exception as error:  # noqa: BLE001 - packages raise anything; one model less is no harm
                print(f"{collection}:{name}: {error}"[:200], file=sys.stderr)
                continue
            if module is not None:
                key = hash_of((one.name, one.shape) for one in tensors_of(module))
                table.setdefault(key, []).append(f"{collection}:{name}")
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(names[:MOST_NAMED])}" for key, names in sorted(table.items()))
    TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    write_table()
