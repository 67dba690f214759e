"""``fix``: try fixes where capture stops, and apply the ones that worked if the options say so."""

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ace_studio.cli.app import Console, ContainFlag, InputOption, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import JobEndedError, follow
from ace_studio.cli.running import filled_recipe_for
from ace_studio.cli.user_word import may_send
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, explained
from ace_studio.records.fixes import CaptureOutcome, FixReport, FixStatus, ranked_fixes
from ace_studio.records.messages import FixRequest
from ace_studio.records.patches import apply_patch, together
from ace_studio.records.recipes.edit import add_controls
from ace_studio.records.roots import present
from ace_studio.records.safe_file import write_atomically

_AT = re.compile(r"^(.+):(\d+)$")


@app.command(name="fix")
@may_send
def fix_command(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml), or a model.")],
    at: Annotated[str, typer.Option("--at", metavar="FILE:LINE", help="One place; without it, all places.")] = "",
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    apply_controls: Annotated[
        bool, typer.Option("--apply-controls", help="Write the best green control of every place into the recipe.")
    ] = False,
    save_patch: Annotated[
        Path | None, typer.Option("--save-patch", metavar="FILE", help="Save the best green patch of every place.")
    ] = None,
    write_source: Annotated[
        bool, typer.Option("--write-source", help="Apply these patches to the model's files; keeps NAME.bak.")
    ] = False,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Try fixes for the places where capture stops: each is captured in a copy and compared with eager."""
    console = Console(as_json=as_json)
    if apply_controls and path.suffix != ".toml":
        why, remedy = f"{path.name} is not a recipe", "Write a recipe for the model, and name that."
        raise AceError.of(ErrorCode.USAGE, "--apply-controls needs a recipe to write into", why=why, remedy=remedy)
    recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain)
    file, line = _place(at, folder)
    request = FixRequest(job="fix", recipe=recipe, folder=str(folder), trust_all=trust, file=file, line=line)
    answer = follow(request, console, contain=contain)
    if answer.problems:
        raise JobEndedError(answer)
    fixes = ranked_fixes(answer.fixes)
    done = _take(fixes, recipe_path=path if apply_controls else None, patch_path=save_patch, write_source=write_source)
    is_green = any(one.status is FixStatus.GREEN for one in fixes)
    is_needed = any(one.before.rung in ("", "partial") for one in fixes)
    if as_json:
        status = "ok" if is_green or not is_needed else "no-fix"
        document = {"format": 1, "status": status, "fixes": msgspec.to_builtins(fixes), **done}
        console.print_json(document)
    else:
        _show(fixes, done, console)
    return ExitCode.DONE if is_green or not is_needed else ExitCode.NOT_CAPTURED


def _place(at: str, folder: Path) -> tuple[str, int]:
    """File and line of ``--at``; a relative file is looked for here, then beside the recipe."""
    if not at:
        return "", 0
    match = _AT.match(at)
    if match is None:
        raise AceError.of(ErrorCode.USAGE, f"'{at}' is not FILE:LINE", remedy="Write --at model.py:41.")
    for path in (Path(match[1]), folder / match[1]):
        if path.is_file():
            return str(path.absolute()), int(match[2])
    raise AceError.of(ErrorCode.NOT_FOUND, f"There is no file {match[1]}", remedy="Check the path.")


def _take(
    fixes: tuple[FixReport, ...], *, recipe_path: Path | None, patch_path: Path | None, write_source: bool
) -> dict[str, Any]:
    """Apply the green fixes as the options say; returns what was done, for the JSON."""
    done: dict[str, Any] = {}
    wanted_patches = _best(fixes, lambda one: bool(one.patch)) if patch_path is not None or write_source else []
    by_file = _by_file(wanted_patches)
    if write_source:
        by_file = {present.get().writable(path): ones for path, ones in by_file.items()}
    recipe_path = recipe_path and present.get().writable(recipe_path)
    patched = {path: _together(path, ones) for path, ones in by_file.items()}
    if recipe_path is not None:
        wanted = [one.control for one in _best(fixes, lambda one: one.control is not None) if one.control is not None]
        done["applied_controls"] = msgspec.to_builtins(add_controls(recipe_path, wanted))
    if patch_path is not None and patched:
        _write(patch_path, "".join(patch for patch, _ in patched.values()), keep_backup=False)
        done["patch"] = str(patch_path)
    if write_source:
        for path, (_, text) in patched.items():
            _write(path, text, keep_backup=True)
        done["changed_files"] = [str(path) for path in patched]
    return done


def _by_file(fixes: list[FixReport]) -> dict[Path, list[FixReport]]:
    found: dict[Path, list[FixReport]] = {}
    for one in fixes:
        found.setdefault(Path(one.file), []).append(one)
    return found


def _together(path: Path, fixes: list[FixReport]) -> tuple[str, str]:
    """One patch of a file for all its fixes, and the text that it makes."""
    what = f"The patches of {path.name} cannot be applied, alone or together"
    remedy = "Nothing was written. Take one place at a time with --at."
    with explained(ErrorCode.BAD_FILE, what, remedy=remedy, where=path, of=(OSError, ValueError)):
        text = path.read_bytes().decode()
        patch = together(text, [one.patch for one in fixes])
        return patch, apply_patch(text, patch)


def _best(fixes: tuple[FixReport, ...], is_of_kind: Any) -> list[FixReport]:
    """The first green fix of a kind for every place."""
    found: dict[tuple[str, int], FixReport] = {}
    for one in fixes:
        if one.status is FixStatus.GREEN and is_of_kind(one):
            found.setdefault((one.file, one.line), one)
    return list(found.values())


def _write(path: Path, text: str, *, keep_backup: bool) -> None:
    with explained(ErrorCode.USAGE, f"{path} could not be written", remedy="Name a file that you may write to."):
        write_atomically(path, text.encode(), keep_backup=keep_backup)


def _show(fixes: tuple[FixReport, ...], done: dict[str, Any], console: Console) -> None:
    if not fixes:
        console.print("Nothing was tried: there is no known fix for a place where capture stops.")
        return
    console.print_table(
        ("status", "kind", "where", "what", "captured", "s"),
        [
            (one.status, one.kind, f"{Path(one.file).name}:{one.line}", one.title, _captured(one), f"{one.seconds:.1f}")
            for one in fixes
        ],
    )
    for one in fixes:
        if text := _remark(one):
            console.print(f"{one.status} {one.kind}: {text}")
        if one.patch and one.status is FixStatus.GREEN:
            console.print("", *one.patch.split("\n"))
    for text in _done_lines(done):
        console.print(text)


def _done_lines(done: dict[str, Any]) -> list[str]:
    lines = [f"In the recipe now: {one['function']} as {one['as']}" for one in done.get("applied_controls", ())]
    if "patch" in done:
        lines.append(f"Saved: {done['patch']} (apply it with `patch -p0` or `git apply -p0`)")
    return lines + [f"Changed: {name} (before: {Path(name).name}.bak)" for name in done.get("changed_files", ())]


def _captured(one: FixReport) -> str:
    if one.status is not FixStatus.GREEN:
        return _outcome(one.before)
    return f"{_outcome(one.before)} -> {_outcome(one.after)}, equal on {one.inputs_compared} inputs"


def _outcome(one: CaptureOutcome) -> str:
    count = "1 break" if one.breaks == 1 else f"{one.breaks} breaks"
    return (one.rung or "nothing") + (f", {count}" if one.breaks else "")


def _remark(one: FixReport) -> str:
    if one.problem is None:
        return one.note
    return f"{one.problem.what} ({one.problem.why})" if one.problem.why else one.problem.what
