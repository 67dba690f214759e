"""The first code of the frozen program."""

from __future__ import annotations

import sys

from ace_studio.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
