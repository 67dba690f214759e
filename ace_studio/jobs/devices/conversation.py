"""Talks with ``measure_there.py`` in a Python of this machine, or of a host over the system's ssh."""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ace_studio.jobs.devices.measure_there import MARK
from ace_studio.jobs.devices.order import BUDGET_S, Order
from ace_studio.jobs.hosts.ssh import FIRST_WORDS, connection_problem, no_ssh, python_command, ssh_environment
from ace_studio.jobs.launch import LaunchOptions, clean_environment, default_interpreter
from ace_studio.records import private_folder
from ace_studio.records.devices import Device, DeviceKind
from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.sending import LeavingFile

SCRIPT = Path(__file__).with_name("measure_there.py")
Told = Callable[[dict[str, Any]], None]
Contents = Mapping[str, bytes | LeavingFile]
"""What a device may ask for, by its SHA-256."""
Started = Callable[[subprocess.Popen[bytes]], object]
"""Gets the process, so that another thread can end it."""
_TAIL_BYTES = 20_000
_END_S = 3.0


def as_document(order: Order, *, is_here: bool) -> dict[str, Any]:
    """The order as ``measure_there.py`` reads it. On this machine artifacts are opened where they lie."""
    here = {file.sha256: str(file.source.path) for one in order.artifacts for file in one.files} if is_here else {}
    return {
        "artifacts": [
            {
                "index": one.index,
                "label": one.label,
                "runtime": one.runtime,
                "wanted": one.wanted,
                "files": [{"name": file.name, "sha256": file.sha256} for file in one.files],
            }
            for one in order.artifacts
        ],
        "inputs": [
            {"sha256": one.sha256, "dtype": one.dtype, "shape": one.shape, "order": one.order} for one in order.inputs
        ],
        "threads": order.threads,
        "rounds": order.rounds,
        "budget_s": BUDGET_S,
        "here": here,
    }


def contents_of(order: Order) -> Contents:
    """What is sent for an order."""
    found: dict[str, bytes | LeavingFile] = {one.sha256: one.content for one in order.inputs}
    return found | {file.sha256: file.source for one in order.artifacts for file in one.files}


def talk(
    device: Device,
    document: Mapping[str, Any],
    contents: Contents,
    *,
    tell: Told,
    started: Started = lambda _process: None,
) -> None:
    """Have a device carry out an order; ``tell`` gets what it says, line by line.

    Raises: AceError if it cannot be reached, has no Python, or ends before it is done.
    """
    command, environment = _command(device)
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=os.name == "posix"
        )
    except OSError as error:
        raise AceError(_no_program(device, error)) from error
    with process:
        started(process)
        try:
            said, is_done = _converse(process, document, contents, tell)
        except BaseException:  # also Ctrl-C; it is raised again
            process.kill()
            raise
    if not is_done:
        raise AceError(_end_problem(device, process.returncode, said))


def _converse(
    process: subprocess.Popen[bytes], document: Mapping[str, Any], contents: Contents, tell: Told
) -> tuple[str, bool]:
    """What the process printed to stderr, and whether it came to its end."""
    said, is_done = bytearray(), False
    assert process.stdin and process.stdout and process.stderr
    reader = threading.Thread(target=_keep, args=(process.stderr, said), daemon=True)
    reader.start()
    program = _program()
    with suppress(OSError):  # it has ended, and says why
        process.stdin.write(b"%d\n%s%s\n" % (len(program), program, json.dumps(document).encode()))
        process.stdin.flush()
    for line in process.stdout:
        _, mark, words = line.decode(errors="replace").partition(MARK)
        if not mark:
            continue  # a shell there may print others
        event = json.loads(words)
        is_done = is_done or event["kind"] in {"done", "device"}
        if event["kind"] == "need":
            with suppress(OSError):
                _send(process.stdin, [contents[one] for one in event["sha256"]], tell)
        elif event["kind"] != "done":
            tell(event)
    with suppress(OSError):
        process.stdin.close()
    reader.join(_END_S)
    return said.decode(errors="replace"), is_done


def _program() -> bytes:
    """The script and the module that it imports, as one program for a Python without this package."""
    name, script = private_folder.__name__, SCRIPT.read_text("utf-8")
    source = Path(private_folder.__file__).read_text("utf-8")
    words = f"import sys,types\nm=sys.modules[{name!r}]=types.ModuleType({name!r})\nexec({source!r},vars(m))\n"
    return f"{words}exec({script!r})\n".encode()


def _command(device: Device) -> tuple[list[str], dict[str, str]]:
    if device.kind is DeviceKind.SSH:
        return python_command(device.address, device.python), ssh_environment()
    python = os.path.expanduser(device.python) or default_interpreter()  # noqa: PTH111 - a bare name stays one
    return [python, "-u", "-c", FIRST_WORDS], clean_environment(LaunchOptions(interpreter=python), os.environ)


def _send(stream: IO[bytes], contents: list[bytes | LeavingFile], tell: Told) -> None:
    for number, content in enumerate(contents, start=1):
        tell({"kind": "progress", "detail": f"sending file {number} of {len(contents)}", "fraction": None})
        if isinstance(content, bytes):
            stream.write(b"%d\n%s" % (len(content), content))
        else:
            with explained(ErrorCode.NOT_FOUND, "An artifact cannot be read", where=content.name):
                source = content.open()
            with source:
                stream.write(b"%d\n" % os.fstat(source.fileno()).st_size)
                while part := source.read(1 << 20):
                    stream.write(part)
    stream.flush()


def _keep(stream: IO[bytes], said: bytearray) -> None:
    for line in stream:
        said += line
        del said[:-_TAIL_BYTES]


def _no_program(device: Device, error: OSError) -> Problem:
    if device.kind is DeviceKind.SSH:
        return no_ssh(error)
    return Problem(
        code=ErrorCode.NOT_INSTALLED,
        what=f"The Python of the device '{device.name}' cannot be started",
        why=f"{device.python}: {error.strerror or error}",
        remedy="Name another one: ace-studio devices remove and add, with --python",
    )


def _end_problem(device: Device, code: int, said: str) -> Problem:
    if "ACE Studio needs Python" in said:
        remedy = "Name a newer one: ace-studio devices remove and add, with --python"
        what = f"The Python of the device '{device.name}' is too old"
        return Problem(code=ErrorCode.NOT_INSTALLED, what=what, why=said.strip(), remedy=remedy)
    if device.kind is DeviceKind.SSH and code in (126, 127, 255):
        return connection_problem(device.address, device.python, code, said)
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it printed nothing")
    return Problem(
        code=ErrorCode.CRASH,
        what=f"The measurement on '{device.name}' ended without an answer",
        why=f"{last} (exit code {code})",
        remedy="A runtime may have crashed, or memory ran out; try one artifact with --run",
        details=said,
    )
