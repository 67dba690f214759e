import subprocess
import sys
from pathlib import Path

PROGRAM = """
import importlib, pathlib, sys
root = pathlib.Path("ace_studio")
files = [path for folder in ("session", "records") for path in root.glob(folder + "/**/*.py")]
names = [".".join(path.with_suffix("").parts) for path in files]
names.remove("ace_studio.session.comparison.alignment")  # imported by the first comparison that needs numpy
names += ["ace_studio.jobs." + name for name in ("client", "launch", "executors", "channel", "log_pump", "autopsy")]
for name in names:
    importlib.import_module(name.removesuffix(".__init__"))
heavy = {"torch", "numpy", "PySide6", "onnx", "openvino", "nncf"} & set(sys.modules)
assert len(names) > 20, names
assert not heavy, heavy
"""


def test_what_the_window_is_made_of_imports_neither_torch_nor_anything_heavy(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
