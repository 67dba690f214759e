"""Opening what the user gives: say what it is, ask for trust where code would run, make a live module of it."""

from ace_studio.engine.load.changed_source import changed_source
from ace_studio.engine.load.inspect_file import inspect_file
from ace_studio.engine.load.kinds import LOADERS
from ace_studio.engine.load.model import files_sha256, load_model
from ace_studio.engine.load.tensors import read_state_dict, read_tensor
from ace_studio.engine.load.torchscript import check_translation
from ace_studio.engine.load.torchvision_ops import make_importable

__all__ = [
    "LOADERS",
    "changed_source",
    "check_translation",
    "files_sha256",
    "inspect_file",
    "load_model",
    "make_importable",
    "read_state_dict",
    "read_tensor",
]
