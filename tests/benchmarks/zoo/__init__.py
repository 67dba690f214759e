"""The zoo: architectures of every kind, with random weights, that capture is measured on."""

from tests.benchmarks.zoo import awkward_rows, timm_rows, torch_nn_rows, torchvision_rows, transformers_rows
from tests.benchmarks.zoo.row import Row

_TABLES = (torch_nn_rows.ROWS, awkward_rows.ROWS, transformers_rows.ROWS, torchvision_rows.ROWS, timm_rows.ROWS)
ROWS: dict[str, Row] = {row.name: row for table in _TABLES for row in table}
"""Every row by its name."""

__all__ = ["ROWS", "Row"]
