"""Wheels that pip installs without a network."""

import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, code: str = "") -> Path:
    """A package of one module; the path of its wheel."""
    module = name.replace("-", "_")
    path, info = folder / f"{module}-{version}-py3-none-any.whl", f"{module}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{module}.py", code)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path
