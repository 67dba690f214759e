"""Operators that every target supports, as they are or under other names.

Asking the compilers would cost seconds of imports at every capture. A test compares the list with the compilers' own
tables.
"""

import json
from pathlib import Path

_NAMES: list[str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
EVERYDAY_OPS = frozenset({"getitem", *(f"aten.{name}" for name in _NAMES)})
"""As `GraphTable.op` names them."""
