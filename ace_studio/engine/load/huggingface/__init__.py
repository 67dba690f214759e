"""Opens folders that Hugging Face's transformers wrote: configuration, weights, and their model class.

Everything is read from the folder; nothing is downloaded. The weights are read as tensors; the folder's own Python runs
only if the model needs it and the user trusts it.
"""

from ace_studio.engine.load.huggingface.build import build_huggingface, describe_huggingface
from ace_studio.engine.load.huggingface.folder import FOLDER_FILES, ModelFolder, looks_like_huggingface, read_folder
