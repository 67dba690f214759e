"""The targets, one row each in ``targets.toml``: what is known of a runtime before it is imported.

A target is a row there and a class in a folder of ``ace_studio/engine/targets``. Recipe checks, the window, the advice
and the engine read the row. `register` adds a row from outside of the package.
"""

import os
import tomllib
from enum import StrEnum
from pathlib import Path

import msgspec

from ace_studio.records.recipes.plan import Precision

ROWS_VARIABLE = "ACE_STUDIO_TARGETS"
"""Environment variable with the registered rows as JSON: processes that are started later read it."""


class RoundingStyle(StrEnum):
    """What a runtime rounds around 8-bit ops at int8-static; `engine/quantize/simulate/int8_style.py` simulates it."""

    READS = "reads"
    """Only what an 8-bit op reads."""
    NNCF = "nncf"
    """The same, but a small convolution at the end of the model stays float."""
    RESULTS = "results"
    """What it reads, and every result."""
    PAIRS = "pairs"
    """As pairs of QuantizeLinear and DequantizeLinear in an ONNX model say."""


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target."""

    name: str
    """As recipes and results write it."""
    label: str
    """As people write it."""
    implementation: str
    """Subclass of `engine.targets.base.Target`: ``package.module:Class`` or ``/path/to/file.py:Class``."""
    packages: tuple[str, ...] = ()
    """Packages besides torch that it needs; the first is the runtime itself, whose version is shown."""
    install: str = ""
    """Command line that installs them all, in the versions that the project supports."""
    opener: str = ""
    """Entry of `OPENERS` in ``run_pieces.py`` that opens a saved subgraph; empty: the entry with this target's name."""
    opening_code: str = ""
    """Python that opens an artifact, and calls it in its last line. ``{path}``, ``{threads}`` and ``{options}`` are
    filled in, ``inputs`` are NumPy arrays. Empty: there is no short one."""
    opening_imports: tuple[str, ...] = ()
    """Modules of torch that opening an artifact imports, and ``import torch`` does not."""
    frontends: tuple[str, ...] = ("torch",)
    """Kinds of models that it takes: ``torch`` (captured from Python) and ``onnx`` (read from an ONNX file)."""
    rounding: RoundingStyle = RoundingStyle.READS
    times_source: str = ""
    """How the latency of a single op is found; empty: by the runtime's own counters."""
    convolution_speedups: dict[Precision, float] = {}
    """Typical speed-up over eager fp32 on convolutional networks; a precision that was not measured is left out."""
    matrix_speedups: dict[Precision, float] = {}
    """The same on networks of matrix products."""
    is_built_for_sizes: bool = False
    """Whether an artifact takes only sizes up to a bound, which the user may choose."""
    is_in_auto: bool = True
    """Whether ``auto`` selects it. False if another target runs the same code and builds faster."""
    is_soon_built: bool = False
    """Whether building takes about as long as opening the artifact; then no other process builds it in advance."""

    has_one_float: bool = False
    """Whether all ops in floating point share one type: then 16 bits at one op mean 16 bits at all that are not low."""

    def typical_speedup(self, precision: str, *, is_convolutional: bool) -> float | None:
        """Typical speed-up over eager fp32; None where nothing was measured."""
        speedups = self.convolution_speedups if is_convolutional else self.matrix_speedups
        return next((speedup for known, speedup in speedups.items() if str(known) == precision), None)


_ROWS = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("targets.toml").read_text(encoding="utf-8"))["target"], tuple[TargetRow, ...]
)
TARGET_ROWS: dict[str, TargetRow] = {row.name: row for row in _ROWS}
"""Name -> row, in the order in which they are shown and built."""


def register(row: TargetRow) -> None:
    """Add a target, for this process and for every process that it starts from now on.

    Raises: ValueError if another target has the name.
    """
    if TARGET_ROWS.setdefault(row.name, row) != row:
        raise ValueError(f"there is a target named '{row.name}' already")
    registered = [one for one in TARGET_ROWS.values() if one not in _ROWS]
    os.environ[ROWS_VARIABLE] = msgspec.json.encode(registered).decode()


def targets_for(frontend: str) -> tuple[str, ...]:
    """Names of the targets that take models of a frontend, ``torch`` or ``onnx``."""
    return tuple(row.name for row in TARGET_ROWS.values() if frontend in row.frontends)


for _row in msgspec.json.decode(os.environ.get(ROWS_VARIABLE, "[]"), type=list[TargetRow]):
    TARGET_ROWS[_row.name] = _row
