"""All mutations, by name."""

from tests.mutations.around_rows import AROUND_ROWS
from tests.mutations.build_rows import BUILD_ROWS
from tests.mutations.engine_rows import ENGINE_ROWS
from tests.mutations.window_rows import WINDOW_ROWS

ROWS = (*ENGINE_ROWS, *BUILD_ROWS, *AROUND_ROWS, *WINDOW_ROWS)
MUTATIONS = {row.name: row for row in ROWS}
