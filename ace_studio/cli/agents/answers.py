"""What a tool answers: the JSON of its command, not too long, with links to the files that were written."""

import json
import mimetypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp import types

from ace_studio.records.errors import ExitCode
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.sweeps import SWEEP_NAME

MOST_ENTRIES = 100
"""Entries of a list that an answer holds."""
EXIT_CODE_KEY = "ace-studio/exit-code"
_RUN_FILES = (RESULT_NAME, "report.html", "comparison.svg")
_SWEEP_FILES = (SWEEP_NAME, "sweep.html", "sweep.csv")


def tool_answer(code: int, printed: str, values: Mapping[str, Any], whole: Path) -> types.CallToolResult:
    """The answer of a tool whose command ended with ``code`` and ``printed`` JSON.

    ``whole`` is where the JSON is saved if a list in it is too long.
    """
    try:
        document = json.loads(printed)
    except json.JSONDecodeError:
        document = {"format": 1, "status": "cancelled" if code == ExitCode.CANCELLED else "failed"}
    short = _shortened(document)
    files = list(linked_files(document, values))
    content: list[types.ContentBlock] = [types.TextContent(text=json.dumps(short))]
    if short != document:
        whole.write_text(printed, encoding="utf-8")
        said = f"Lists of more than {MOST_ENTRIES} entries end there; {whole} holds the whole answer."
        content.append(types.TextContent(text=said))
        files.append(whole)
    content += [
        types.ResourceLink(
            name=path.name,
            uri=path.as_uri(),
            mime_type=mimetypes.guess_type(path.name)[0],
            size=path.stat().st_size if path.is_file() else None,
        )
        for path in files
    ]
    return types.CallToolResult(
        content=content,
        structured_content=short if isinstance(short, dict) else None,
        is_error=code not in (ExitCode.DONE, ExitCode.GOAL_NOT_MET),
        _meta={EXIT_CODE_KEY: int(code)},
    )


def linked_files(document: Any, values: Mapping[str, Any]) -> Iterator[Path]:
    """The files that an answer is about and that are there."""
    if not isinstance(document, dict):
        return
    folder = Path(values.get("out") or values.get("folder") or ".").absolute()
    runs = document.get("runs", ())
    named = [folder / name for name in _RUN_FILES if "runs" in document]
    named += [folder / name for name in _SWEEP_FILES if "rows" in document]
    named += [folder / run["artifact"] for run in runs if run.get("artifact")]
    named += [Path(document[key]) for key in ("saved", "patch") if key in document]
    named += [Path(name) for name in document.get("changed_files", ())]
    named += [Path(file["path"]) for file in document.get("files", ()) if isinstance(file, dict)]
    named += [Path(document["caught"]["path"])] if document.get("caught", {}).get("path") else []
    yield from (path.absolute() for path in dict.fromkeys(named) if path.exists())


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            return {key: _shortened(one) for key, one in value.items()}
        case list():
            return [_shortened(one) for one in value[:MOST_ENTRIES]]
        case _:
            return value
