"""Explains an exception of user code: the line that raised it, the reason in one sentence, and a remedy."""

import linecache
import os
import re
import sys
import sysconfig
import traceback
from pathlib import Path

import torch

from ace_studio.engine.load.entries import syntax_problem
from ace_studio.records import containment
from ace_studio.records.errors import AceError, ErrorCode, Problem, is_out_of_memory, message_of

_OWN_FOLDER = str(Path(__file__).resolve().parents[2]) + os.sep
_LIBRARY_FOLDERS = tuple(
    f"{Path(folder).resolve()}{os.sep}"
    for folder in (_OWN_FOLDER, *torch.__path__, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
)
_PACKAGE_OF_IMPORT = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "yaml": "pyyaml", "bs4": "beautifulsoup4", "attr": "attrs", "dateutil": "python-dateutil",
    "pytorch_lightning": "pytorch-lightning", "Crypto": "pycryptodome",
}  # fmt: skip
"""Import name -> name for pip, where they differ."""
_TORCHVISION_TRAP = re.compile(r"torchvision::nms does not exist")
_TORCHVISION_REMEDY = (
    f"install the torchvision that belongs to torch {torch.__version__} (a CPU build beside a CPU build); or, if you "
    "need none of its own operators, put before the import: "
    'lib = torch.library.Library("torchvision", "DEF"); '
    'lib.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"); '
    'lib.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")'
)


def is_library_file(file: str) -> bool:
    """Whether a source file belongs to torch, an installed package, Python or ACE Studio, not to the user."""
    is_plain = ".." not in file and file.startswith(_LIBRARY_FOLDERS)  # as most are; to resolve a path takes long
    if is_plain or "site-packages" in file or "dist-packages" in file or file.startswith("<"):
        return True
    return str(Path(file).resolve()).startswith(_LIBRARY_FOLDERS)


def user_code_error(error: BaseException, doing: str) -> AceError:
    """The AceError for an exception that user code raised during ``doing`` (``Importing model.py``).

    The details hold the traceback; ``where`` is the innermost line in the user's own files.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return syntax_problem(Path(error.filename), error)
    file, line = _user_place(error)
    refused = containment.refusal(error)
    code, why, remedy = (ErrorCode.USER_CODE, *refused) if refused else _diagnose(error)
    source = linecache.getline(file, line).strip() if file else ""
    reason = [why, f"line {line} of {Path(file).name} reads `{source}`" if source else ""]
    return AceError(
        Problem(
            code=code,
            what=f"{doing} failed: {_message(error)}",
            why="; ".join(part for part in reason if part),
            remedy=remedy,
            where=f"{file}:{line}" if file else "",
            details="".join(traceback.format_exception(error)),
        )
    )


def raised_by_user(error: BaseException) -> bool:
    """Whether the user's own files raised an exception that nobody expected, and not the engine on their behalf."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not is_library_file(frame.filename):
            return True
        if frame.filename.startswith(_OWN_FOLDER):
            return False
    return False


def _message(error: BaseException) -> str:
    """The exception's type and the beginning of its message."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def _user_place(error: BaseException) -> tuple[str, int]:
    """File and line of the innermost frame in the user's files, of the error or of its causes."""
    for link in containment.causes(error):
        for frame in reversed(traceback.extract_tb(link.__traceback__)):
            if frame.lineno and not is_library_file(frame.filename):
                return frame.filename, frame.lineno
    return "", 0


def _diagnose(error: BaseException) -> tuple[ErrorCode, str, str]:
    """Code, reason and remedy."""
    chain = list(containment.causes(error))
    if any(_TORCHVISION_TRAP.search(message_of(link)) for link in chain):
        why = "the installed torchvision was built for another torch, so its operators are missing"
        return ErrorCode.NOT_INSTALLED, why, _TORCHVISION_REMEDY
    for link in chain:
        if isinstance(link, ModuleNotFoundError) and link.name:
            return _missing_module(link.name)
    if isinstance(error, ImportError) and "torchdynamo" in message_of(error):
        why = f"{message_of(error)}: that name is from old documentation, no current release has it"
        return ErrorCode.USER_CODE, why, "write `torch.compiler.allow_in_graph`, or add a control to the recipe instead"
    if isinstance(error, SystemExit):
        remedy = "put the part that runs as a script under `if __name__ == '__main__':`, and raise exceptions elsewhere"
        return ErrorCode.USER_CODE, "the code ends the program that runs it", remedy
    if isinstance(error, RecursionError):
        why = "a function calls itself without end, or modules are nested deeper than Python's limit"
        return ErrorCode.USER_CODE, why, "end the recursion; a module must not be part of itself"
    if isinstance(error, UnicodeDecodeError):
        remedy = "open files with the encoding that they were written in: open(path, encoding='latin-1')"
        return ErrorCode.USER_CODE, "bytes were read as text of another encoding", remedy
    if is_out_of_memory(error):
        return ErrorCode.OUT_OF_MEMORY, "there was not enough memory", "close other programs, or use smaller examples"
    if isinstance(error, FileNotFoundError):
        why = "a relative path is resolved from the folder in which the engine was started"
        return ErrorCode.USER_CODE, why, "build the path from `Path(__file__).parent`"
    return ErrorCode.USER_CODE, "", "correct the line; running the file with Python should show the same"


def _missing_module(name: str) -> tuple[ErrorCode, str, str]:
    top = name.partition(".")[0]
    if top in sys.modules and top != name:
        why = f"the installed '{top}' has no part '{name}'"
        return ErrorCode.NOT_INSTALLED, why, f"install the version of '{top}' that your code was written for"
    package = _PACKAGE_OF_IMPORT.get(top, top.replace("_", "-"))
    why = f"'{top}' is not installed in the Python that the engine runs in, and no file of that name lies beside yours"
    return ErrorCode.NOT_INSTALLED, why, f"{sys.executable} -m pip install {package}"
