"""Models that a benchmark is given as files: ``NAME.py`` with ``load``, ``calibration`` and ``score``."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ace_studio.engine.load.torchvision.ops import make_importable


def load_file(path: Path) -> ModuleType:
    """The module of one model; it may import what lies beside it."""
    make_importable()  # a model may import what imports torchvision
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
