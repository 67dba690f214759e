"""What a test of this folder calls in a new process."""

import sys

from ace_studio.engine.load import make_importable
from ace_studio.engine.load.torchvision.ops import is_standing_in


def tell(folder: str) -> None:
    """Print whether operators stand in for those of the torchvision in a folder, and whether it has its own."""
    sys.path.insert(0, folder)
    make_importable()
    import torchvision

    print(is_standing_in(), torchvision.extension._has_ops())
