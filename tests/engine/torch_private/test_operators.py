"""A process that has never quantized anything can open a saved int8 program."""

from __future__ import annotations

import subprocess
import sys

CODE = """\
import torch
from ace_studio.engine.torch_private.operators import register_quantized_ops
assert not hasattr(torch.ops.quantized_decomposed, "dequantize_per_channel"), "known before it was asked for"
register_quantized_ops()
torch.ops.quantized_decomposed.dequantize_per_channel.default
"""


def test_the_ops_of_a_saved_int8_program_are_known_in_a_fresh_process_after_asking():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
