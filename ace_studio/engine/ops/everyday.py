"""Operators that every target supports, as they are or under other names.

Asking the compilers would cost seconds of imports at every capture. A test compares the list with the compilers' own
tables.
"""

from pathlib import Path

import msgspec

_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=list[str])
EVERYDAY_OPS = frozenset({"getitem", *(f"aten.{name}" for name in _NAMES)})
"""As `GraphTable.op` names them."""
