"""A folder that Hugging Face's transformers wrote: configuration, weights, and the class that they belong to.

Everything is read from the folder; nothing is downloaded. The weights are tensors; the folder's own Python runs only
where the model needs it and it was trusted.
"""

from __future__ import annotations

from ace_studio.engine.load.huggingface.build import build_huggingface
from ace_studio.engine.load.huggingface.describe import describe_huggingface
from ace_studio.engine.load.huggingface.folder import FOLDER_DOORS, ModelFolder, looks_like_huggingface, read_folder

__all__ = [
    "FOLDER_DOORS",
    "ModelFolder",
    "build_huggingface",
    "describe_huggingface",
    "looks_like_huggingface",
    "read_folder",
]
