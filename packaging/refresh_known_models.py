"""Write the table by which weights are recognised, ``known.json``, for the timm and torchvision that are installed.

Run it with ``.venv/bin/python`` after one of them has got another version. Every model is built, with shapes alone.
"""

from __future__ import annotations

import json
import sys

from ace_studio.engine.load.named.fits import MOST_NAMES, TABLE, hash_of_tensors
from ace_studio.engine.load.named.loader import tensors_of
from ace_studio.engine.load.named.models import find_model, list_names
from ace_studio.records.recipes.named_source import NamedSource


def main() -> None:
    """Replace the table."""
    table: dict[str, list[str]] = {}
    for collection in ("torchvision", "timm"):
        for name in list_names(collection):
            try:
                module = find_model(NamedSource(collection, name)).build_on_meta()
            except Exception as error:  # noqa: BLE001 - packages raise anything; one model less is no harm
                print(f"{collection}:{name}: {error}"[:200], file=sys.stderr)
                continue
            if module is not None:
                key = hash_of_tensors((one.name, one.shape) for one in tensors_of(module))
                table.setdefault(key, []).append(f"{collection}:{name}")
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(names[:MOST_NAMES])}" for key, names in sorted(table.items()))
    TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
