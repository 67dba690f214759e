"""Writes what a Linux desktop looks for: menu entry, icon, file types, store page and manual page.

    python packaging/linux/stage.py PREFIX

Below PREFIX, as a package installs it (``usr/share/...``); the same bytes each time. The Python needs PySide6, which
draws the icons.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging" / "installers"))
from icons import stage_icons  # noqa: E402
from steps import build_time, version  # noqa: E402

ID = "ace_studio.desktop.AceStudio"
"""Id of the store page; the menu entry is named as the window says (gui/shell/start.py)."""
NAME = "ace-studio"
SUMMARY = "Compress, compare and export PyTorch models"
ABOUT = (
    "Trace a model, set example shapes in a table, quantize and prune it under an accuracy goal, lower it to several "
    "runtimes, measure latency and accuracy, and export the verified artifact. Everything happens on this machine."
)
TYPES = (
    ("application/x-pytorch-weights", "PyTorch weights or model", ("*.pt", "*.pth"), "application/zip"),
    ("application/x-pytorch-program", "PyTorch exported program", ("*.pt2",), "application/zip"),
    ("application/x-onnx", "ONNX model", ("*.onnx",), ""),
    ("application/x-safetensors", "Tensors (safetensors)", ("*.safetensors",), ""),
    ("application/x-ace-studio-recipe", "ACE Studio recipe", ("*.ace.toml", "recipe.toml"), "application/toml"),
)
"""MIME type, name, patterns, and the type that it is a kind of, whose programs are offered too.

The window proposes ``*.ace.toml`` for a recipe. One with another name is a plain ``.toml``, which the program does not
claim: text editors claim text alone, so it would become the default for every ``.toml`` of the system. None has first
bytes that tell it from other files: a recipe begins with a comment or a key, ONNX and safetensors with a length.
"""


def stage(prefix: Path) -> None:
    """Write everything below ``prefix``."""
    share = prefix / "usr" / "share"
    _write(share / "applications" / f"{NAME}.desktop", desktop_entry())
    _write(share / "mime" / "packages" / f"{NAME}.xml", mime_types())
    _write(share / "metainfo" / f"{ID}.metainfo.xml", store_page())
    icon = share / "icons" / "hicolor" / "scalable" / "apps" / f"{NAME}.svg"
    icon.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "resources" / "icons" / "ace-studio.svg", icon)
    stage_icons(Path(sys.executable), share)
    manual = share / "man" / "man1" / f"{NAME}.1.gz"
    manual.parent.mkdir(parents=True, exist_ok=True)
    manual.write_bytes(gzip.compress(manual_page().encode(), mtime=0))


def desktop_entry() -> str:
    """The menu entry; ``%F`` are the files that were chosen with Open with."""
    types = ";".join(row[0] for row in TYPES)
    return (
        "[Desktop Entry]\nType=Application\nVersion=1.4\nName=ACE Studio\n"
        f"GenericName=Model compression\nComment={SUMMARY}\nExec={NAME} open %F\nIcon={NAME}\nTerminal=false\n"
        "Categories=Development;\nKeywords=PyTorch;ONNX;quantization;pruning;\n"
        f"MimeType={types};\nStartupWMClass={NAME}\n"
    )


def mime_types() -> str:
    """File types that shared-mime-info does not have; a pattern alone weighs little, so that others may claim it."""
    rows = []
    for name, words, patterns, kind in TYPES:
        rows.append(f'  <mime-type type="{name}">\n    <comment>{escape(words)}</comment>')
        weight = 60 if kind == "application/toml" else 40  # more than *.toml has
        rows += [f'    <glob weight="{weight}" pattern="{pattern}"/>' for pattern in patterns]
        if kind:
            rows.append(f'    <sub-class-of type="{kind}"/>')
        rows.append("  </mime-type>")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">'
    return "\n".join([head, *rows, "</mime-info>", ""])


def store_page() -> str:
    """The AppStream page of the program."""
    day = datetime.fromtimestamp(build_time(), UTC).date()
    provided = "".join(f"    <mediatype>{row[0]}</mediatype>\n" for row in TYPES)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<component type="desktop-application">
  <id>{ID}</id>
  <metadata_license>CC0-1.0</metadata_license>
  <project_license>{tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license"]}</project_license>
  <name>ACE Studio</name>
  <summary>{SUMMARY}</summary>
  <developer id="{ID.rpartition(".")[0]}"><name>The ACE Studio authors</name></developer>
  <description><p>{escape(ABOUT)}</p></description>
  <launchable type="desktop-id">{NAME}.desktop</launchable>
  <icon type="stock">{NAME}</icon>
  <categories><category>Development</category></categories>
  <provides>
    <binary>{NAME}</binary>
{provided}  </provides>
  <content_rating type="oars-1.1"/>
  <releases><release version="{version()}" date="{day}"/></releases>
</component>
"""


def manual_page() -> str:
    """The manual page, from the tables of commands, options and codes in the help."""
    pages = [ROOT / "resources" / "help" / name for name in ("command-line.md", "messages.md")]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    day = datetime.fromtimestamp(build_time(), UTC).date()
    page = [
        f'.TH ACE-STUDIO 1 "{day}" "ACE Studio {version()}"',
        ".SH NAME",
        f"ace\\-studio \\- {SUMMARY[0].lower()}{SUMMARY[1:]}",
        ".SH SYNOPSIS",
        ".B ace\\-studio\n[\\fICOMMAND\\fR] [\\fIFILE\\fR ...]",
        ".SH DESCRIPTION",
        _roff(ABOUT + " Without a command the window opens."),
        ".SH COMMANDS, OPTIONS, ERROR AND WARNING CODES",
    ]
    for words, *rest in cells:
        page += [".TP", f"\\fB{_roff(words)}\\fR", _roff(" ".join(rest))]
    return "\n".join(page) + "\n"


def _roff(text: str) -> str:
    """Plain text of a Markdown cell, with what roff takes for commands escaped."""
    plain = "".join(part.partition("](")[0] if "](" in part else part for part in _links(text)).replace("`", "")
    return plain.replace("\\", "\\\\").replace("-", "\\-").replace("\n.", "\n\\&.")


def _links(text: str) -> list[str]:
    """The text cut at links, each link as ``words](address``."""
    parts = []
    while "[" in text and "](" in text and ")" in text.partition("](")[2]:
        before, _, text = text.partition("[")
        link, _, text = text.partition(")")
        parts += [before, link]
    return [*parts, text]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
