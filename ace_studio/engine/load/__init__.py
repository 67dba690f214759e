"""Loads the user's model: identifies the file, requires trust where code would run, and makes a live module."""

from ace_studio.engine.load.changed_source import changed_source
from ace_studio.engine.load.inspect_file import inspect_file
from ace_studio.engine.load.kinds import LOADERS
from ace_studio.engine.load.model import files_sha256, load_model
from ace_studio.engine.load.onnx.graph import node_ids, onnx_table
from ace_studio.engine.load.onnx.model import OnnxModule, dims_of
from ace_studio.engine.load.tensors import read_arrays, read_named_content, read_state_dict, read_tensor
from ace_studio.engine.load.torchscript.program import check_translation, without_script
from ace_studio.engine.load.torchvision.ops import make_importable
