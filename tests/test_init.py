"""The package itself: cheap to import, and the Python function comes with its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ace_studio


def test_importing_the_package_imports_neither_torch_nor_qt() -> None:
    code = "import sys, ace_studio; print(sorted({'torch', 'PySide6', 'ace_studio.api'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_python_function_is_the_one_of_the_api() -> None:
    from ace_studio import api

    assert ace_studio.compile is api.compile
    assert ace_studio.try_fixes is api.try_fixes


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'compose'"):
        _ = ace_studio.compose
