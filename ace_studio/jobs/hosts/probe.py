"""Says what a machine has: sent to a Python there on stdin, standard library only, for any Python 3.

Prints one line: the mark and a JSON object. Nothing of ACE Studio need be there, and nothing stays.
"""

import json
import os
import platform
import shutil
import sys
import tempfile

MARK = "ace-studio-probe:"
NAMES = (
    "msgspec", "networkx", "numpy", "platformdirs", "psutil", "filelock", "jinja2", "safetensors", "scipy", "torch",
    "torchao", "onnx", "onnxscript", "onnxruntime", "openvino", "nncf", "executorch", "tensorrt", "torch-pruning",
    "transformers", "timm", "torchvision", "litert-torch", "ai-edge-litert", "ai-edge-quantizer", "coremltools",
)  # fmt: skip


def versions() -> "dict[str, str]":
    """Name -> version of the packages that are installed."""
    try:
        from importlib import metadata  # noqa: PLC0415 - Python 3.7 has none; its version is the answer then
    except ImportError:
        return {}
    found = {}
    for name in NAMES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def room(folder: str) -> "tuple[int, str]":
    """Bytes that are free for files of the engine, and why none can be written; the folder is made if missing."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(b"0" * 65536)
            stream.flush()
        return shutil.disk_usage(folder).free, ""
    except OSError as error:
        return 0, str(error)


def memory_bytes() -> int:
    """Memory of the machine; 0 if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def main() -> None:
    """Print the line."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    cache = os.path.join(home, "ace-studio", "engine-here")  # noqa: PTH118
    free, refusal = room(cache)
    found = {
        "version": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": memory_bytes(),
        "cache": cache,
        "disk_free_bytes": free,
        "disk_refusal": refusal,
        "packages": versions(),
    }
    sys.stdout.write(MARK + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
