"""The shell line that runs the current choices: shown live, to be copied and run."""

import shlex
from pathlib import Path

from ace_studio.session.document import Document

DEFAULT_OUTPUT = "ace-output"


def command_line(document: Document, *, output: str = DEFAULT_OUTPUT) -> str:
    """The shell lines that run the current choices; a comment says so if they have to be saved first."""
    name = document.recipe_path or str(Path(document.folder) / document.proposed_name)
    words = ["ace-studio", "run", name, "--out", output]
    if document.file is None or document.file.trust == "code":
        words.append("--trust")
    line = shlex.join(words)
    is_saved = bool(document.recipe_path) and not document.is_dirty
    return line if is_saved else f"# Save the recipe first: the file does not have the current choices.\n{line}"
