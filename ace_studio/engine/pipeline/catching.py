"""Serves the request to run a script and store the calls of a module in it."""

from pathlib import Path

from ace_studio.engine.catch import CallRecorder, caught_rows, run_script, store_calls
from ace_studio.engine.load.callables import CodeFile
from ace_studio.engine.load.import_gate import GATE
from ace_studio.engine.load.imports_beside import imports_beside
from ace_studio.engine.load.torchvision.ops import make_importable
from ace_studio.engine.load.trust import CodeToRun, require_trust
from ace_studio.engine.load.user_code import UserModules
from ace_studio.engine.pipeline.process_state import in_folder
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import CatchRequest, InputsCaught, Phase


def catch_inputs(request: CatchRequest, reporter: Reporter) -> None:
    """Run the script and store the calls. What was caught is stored as well if the script fails or is cancelled.

    Raises: AceError(NOT_FOUND or BAD_FILE) for a script that is none; AceError(UNTRUSTED) before anything runs;
        AceError with the script's own failure, or NO_DATA, if nothing was caught.
    """
    script = Path(request.script)
    code = _read_script(script)
    trusted = frozenset(request.trusted_sha256)
    would_run = (f"the whole script {script.name}, as `python {script.name}` does",)
    files = [CodeToRun(script, code.sha256, would_run), *imports_beside([code.source])]
    GATE.begin(lambda sha256: request.trust_all or sha256 in trusted)
    GATE.add_folder(script.parent)
    require_trust(files, lambda sha256: request.trust_all or sha256 in trusted)
    make_importable()
    reporter.phase(Phase.CATCH, script.name)
    recorder = CallRecorder(wanted=request.module, calls=request.calls, check=reporter.check)
    problem, stop = None, None
    folder = Path(request.folder or script.parent)
    try:
        with in_folder(folder), recorder.listening():
            modules = UserModules()
            with modules.guard(f"Running {script.name}", folder=script.parent.resolve()):
                run_script(script, code.content, request.arguments)
    except (Cancelled, KeyboardInterrupt) as asked:
        stop = asked
    except AceError as error:
        problem = error.problem
    GATE.raise_refused()
    _tell(request, recorder, problem, reporter, is_stopped=stop is not None)
    if stop is not None:
        raise stop


def _read_script(script: Path) -> CodeFile:
    if not script.is_file() or script.suffix != ".py":
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"There is no script {script.name}" if not script.exists() else f"{script.name} is no Python script",
            remedy="Name a .py file that calls the model.",
            where=str(script),
        )
    return CodeFile.read(script)


def _tell(
    request: CatchRequest, recorder: CallRecorder, problem: Problem | None, reporter: Reporter, *, is_stopped: bool
) -> None:
    shelf = recorder.chosen()
    if shelf is None:
        if is_stopped:
            return
        raise AceError(*([problem] if problem else []), *_nothing_caught(request, recorder, is_first=problem is None))
    output = Path(request.output)
    files = store_calls(shelf.kept, module=shelf.module, script=Path(request.script), output=output)
    if is_stopped:
        return
    reporter.emit(
        InputsCaught(
            job=request.job,
            path=str(files.structure),
            module=type(shelf.module).__qualname__,
            seen=shelf.seen,
            kept=len(shelf.kept),
            bytes=sum(one.bytes for one in shelf.kept),
            modules=recorder.modules(),
            rows=caught_rows(shelf.kept, module=shelf.module, tensors=files.tensors.absolute()),
            problem=problem,
            notes=tuple(recorder.notes),
        )
    )


def _nothing_caught(request: CatchRequest, recorder: CallRecorder, *, is_first: bool) -> list[Problem]:
    if not is_first:
        return []
    called = recorder.modules()
    wanted = f"'{request.module}'" if request.module else "module"
    names = ", ".join(dict.fromkeys(f"{one.path or 'the outermost'} ({one.kind})" for one in called[:12]))
    why = f"it called {names}" if called else "it called no torch module at all"
    if recorder.notes:
        why += "; " + "; ".join(recorder.notes)
    return [
        Problem(
            code=ErrorCode.NO_DATA,
            what=f"The script ended without a call of any {wanted} that could be kept",
            why=why,
            remedy="Name one of these modules, or give the script the arguments with which it calls the model.",
            where=request.script,
        )
    ]
