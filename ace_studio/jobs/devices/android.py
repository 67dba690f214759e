"""Measures artifacts on an Android device by adb, with the runtimes' own programs, where they are there.

ONNX Runtime's is ``onnxruntime_perf_test``, ExecuTorch's ``executor_runner``. Neither comes with a package: whoever
builds the runtime for the device has it, and puts it into `FOLDER` there.
"""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ace_studio.jobs.devices.conversation import Started, Told
from ace_studio.jobs.devices.order import Order, SentArtifact, SentInput
from ace_studio.records.devices import Device
from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.private_folder import copy_if_same, open_lock, temporary_base, user_cache_folder

FOLDER = "/data/local/tmp/ace-studio"
TOOLS = {"onnxruntime": "onnxruntime_perf_test", "executorch": "executor_runner"}
"""Runtime -> its program on the device."""
PASSES = 3
"""Several artifacts take turns so often, because a process of one cannot hold another."""
_ONNX_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "bfloat16": 16,
}  # fmt: skip
"""``TensorProto.DataType`` of onnx.proto."""
_STATE = (
    "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo g $(cat $f); done;"
    "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq; do echo f $(cat $f); done;"
    "for f in /sys/class/thermal/thermal_zone*/temp; do echo t $(cat $f); done;"
    "echo m $(getprop ro.product.model) '('$(getprop ro.board.platform)')'; echo v $(getprop ro.build.version.release)"
)
_ITERATION = re.compile(r"Iteration \d+ of \d+: ([\d.]+) ms")
_TOTAL = re.compile(r"Model executed successfully (\d+) time\(s\) in ([\d.]+) ms")
_POLL_S = 0.2
_LIMIT_S = 600.0
_NOT_THERE = re.compile(r"not found|no devices|offline|unauthorized|more than one|cannot connect", re.IGNORECASE)


class Phone:
    """One Android device."""

    def __init__(self, device: Device, started: Started) -> None:
        """Raises: AceError(NOT_INSTALLED) if there is no adb here."""
        self._device, self._started = device, started
        program = shutil.which("adb")
        if program is None:
            raise AceError.of(
                ErrorCode.NOT_INSTALLED,
                "There is no adb on this machine",
                why="Android devices are reached by it",
                remedy="Install Android's platform tools (Debian: apt-get install adb)",
            )
        self._command = [program, *(["-s", device.address] if device.address else [])]

    def adb(self, *words: str) -> str:
        """What a command of adb prints. Raises: AceError if it fails, or takes longer than ten minutes."""
        pipe = subprocess.PIPE
        with subprocess.Popen([*self._command, *words], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
            self._started(process)
            try:
                out, err = process.communicate(timeout=_LIMIT_S)
            except BaseException:  # also Ctrl-C and the limit; it is raised again
                process.kill()
                raise
        said = "\n".join(part.decode(errors="replace").strip() for part in (out, err)).strip()
        if process.returncode:
            raise AceError(self._problem(said, process.returncode))
        return said

    def shell(self, words: str) -> str:
        """What a shell there prints, stderr too. Raises: as `adb`."""
        return self.adb("shell", words)

    def state(self) -> dict[str, Any]:
        """Governor, frequency, temperature, machine and version, as `measure_there.state` has the first three."""
        lines = [line.partition(" ")[::2] for line in self.shell(_STATE).splitlines()]
        told = {key: [value.strip() for one, value in lines if one == key and value.strip()] for key in "gftmv"}
        megahertz = [int(one) / 1e3 for one in told["f"] if one.isdecimal()]
        degrees = [int(one) / 1e3 for one in told["t"] if one.isdecimal() and 0 < int(one) < 150_000]
        return {
            "governor": "/".join(sorted(set(told["g"]))),
            "frequency_mhz": sum(megahertz) / len(megahertz) if megahertz else None,
            "temperature_c": max(degrees) if degrees else None,
            "machine": " ".join(told["m"]),
            "version": " ".join(told["v"]),
        }

    def tool(self, runtime: str) -> str:
        """Path of a runtime's program there; empty if it is missing."""
        name = TOOLS[runtime]
        places = (f"{FOLDER}/{name}", f"/data/local/tmp/{name}")
        looking = ";".join(f"if [ -x {place} ]; then echo {place}; fi" for place in places)
        return next(iter(self.shell(looking).split()), "")

    def _problem(self, said: str, code: int) -> Problem:
        last = said.splitlines()[-1] if said else f"exit code {code}"
        if _NOT_THERE.search(last) and ("device" in last or "emulator" in last):
            return Problem(
                code=ErrorCode.HOST,
                what=f"The device '{self._device.name}' cannot be reached",
                why=last,
                remedy="Attach it, allow USB debugging on it, and see: adb devices",
                where=self._device.place,
            )
        return Problem(
            code=ErrorCode.HOST,
            what=f"A command on '{self._device.name}' failed",
            why=last,
            remedy="Read its output in the details",
            where=self._device.place,
            details=said,
        )


def tool_line(runtime: str) -> str:
    """How a runtime's program comes to the device."""
    return f"adb push {TOOLS[runtime]} {FOLDER}/ && adb shell chmod +x {FOLDER}/{TOOLS[runtime]}"


def check_android(device: Device, *, tell: Told, started: Started) -> None:
    """Say what the device has, in the event of `measure_there.tell`. Raises: AceError if it cannot be reached."""
    phone = Phone(device, started)
    state = phone.state()
    found = {runtime: phone.tool(runtime) for runtime in TOOLS}
    tell(
        {
            "kind": "device",
            "machine": state["machine"],
            "version": f"Android {state['version']}",
            "runtimes": {runtime: path for runtime, path in found.items() if path},
            "missing": {runtime: tool_line(runtime) for runtime, path in found.items() if not path},
            "state": state,
        }
    )


def measure_android(device: Device, order: Order, *, tell: Told, started: Started) -> None:
    """Carry out an order on an Android device; ``tell`` gets the events of `measure_there`.

    Raises: AceError if the device cannot be reached.
    """
    phone = Phone(device, started)
    with _alone(device, tell), TemporaryDirectory(dir=temporary_base()) as name:
        before, work = phone.state(), f"{FOLDER}/work"
        ready: dict[int, str] = {}
        times: dict[int, list[float]] = {}
        try:
            for artifact in order.artifacts:
                tell({"kind": "progress", "detail": f"sending {artifact.label}", "fraction": None})
                try:
                    ready[artifact.index] = _laid_down(phone, artifact, order, Path(name), f"{work}/{artifact.index}")
                except AceError as error:
                    _tell_failure(artifact, error, tell)
            passes = PASSES if len(ready) > 1 else 1
            for number in range(passes):
                for artifact in order.artifacts:
                    if artifact.index not in ready:
                        continue
                    detail = f"round {number + 1} of {passes}: {artifact.label}"
                    tell({"kind": "progress", "detail": detail, "fraction": number / passes})
                    try:
                        found = _timed(phone, artifact, ready[artifact.index])
                        times.setdefault(artifact.index, []).extend(found)
                    except AceError as error:
                        _tell_failure(artifact, error, tell)
                        ready.pop(artifact.index)
                        times.pop(artifact.index, None)
        finally:
            with suppress(AceError):
                phone.shell(f"rm -rf {work}")
        after = phone.state()
        for artifact in order.artifacts:
            if artifact.index in times:
                told = {"kind": "figure", "index": artifact.index, "wall_ms": times[artifact.index], "cpu_ms": []}
                tell(told | {"runtime": TOOLS[artifact.runtime], "machine": after["machine"], "before": before}
                     | {"after": after})  # fmt: skip


def _laid_down(phone: Phone, artifact: SentArtifact, order: Order, here: Path, there: str) -> str:
    """Send an artifact with its inputs; returns the command that measures it."""
    if artifact.runtime not in TOOLS:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{artifact.label} cannot be measured on Android",
            why=f"there is no program of {artifact.runtime} for it",
            remedy="Build it for onnxruntime or executorch",
        )
    tool = phone.tool(artifact.runtime)
    if not tool:
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            f"{TOOLS[artifact.runtime]} is not on the device",
            why=f"looked for in {FOLDER} and /data/local/tmp",
            remedy=f"Build it from the runtime's sources for Android, then: {tool_line(artifact.runtime)}",
        )
    is_onnx = artifact.runtime == "onnxruntime"
    inputs = f"{there}/test_data_set_0" if is_onnx else f"{there}/inputs"
    phone.shell(f"rm -rf {there}; mkdir -p {inputs}")
    for file in artifact.files:  # a copy, because adb would open whatever has the name then
        copy, what, where = here / "pushed", "An artifact cannot be read", file.source.name
        with explained(ErrorCode.NOT_FOUND, what, where=where):
            is_same = copy_if_same(file.source.path, copy, file.sha256)
        if not is_same:
            what, remedy = f"{file.name} changed while it was about to be measured", "Measure again"
            raise AceError.of(ErrorCode.BAD_FILE, what, why="its SHA-256 is another one now", remedy=remedy)
        phone.adb("push", str(copy), f"{there}/{file.name}")
    names = []
    for number, given in enumerate(order.inputs):
        names.append(f"input_{number}.pb" if is_onnx else f"input_{number}.bin")
        (here / names[-1]).write_bytes(tensor_proto(given) if is_onnx else given.content)
        phone.adb("push", str(here / names[-1]), f"{inputs}/{names[-1]}")
    folder, model = shlex.quote(tool.rpartition("/")[0]), shlex.quote(artifact.files[0].name)
    rounds = max(5, -(-order.rounds // PASSES))
    if is_onnx:
        words = f"-e cpu -m times -r {rounds} -x {order.threads} -y 1 -o 99 {model} times.csv"
    else:
        listed = ",".join(f"inputs/{one}" for one in names)
        words = f"--model_path={model} --inputs={listed} --num_executions={rounds} --cpu_threads={order.threads}"
    return f"cd {there} && rm -f times.csv && LD_LIBRARY_PATH={folder} {shlex.quote(tool)} {words} 2>&1"


def _timed(phone: Phone, artifact: SentArtifact, command: str) -> list[float]:
    """Milliseconds of every call that one process of the program made. Raises: AceError if it says none."""
    said = phone.shell(command)
    if artifact.runtime == "onnxruntime":
        folder = command.removeprefix("cd ").partition(" ")[0]
        found = onnx_times(phone.shell(f"cat {folder}/times.csv"))
    else:
        found = executor_times(said)
        if not found:  # built for Android, it may write to the system's log only
            found = executor_times(phone.adb("logcat", "-d", "-t", "400"))
    if not found:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{TOOLS[artifact.runtime]} told no times",
            why=said.splitlines()[-1] if said else "it printed nothing",
            remedy="Build it from a newer release of the runtime",
            details=said,
        )
    return found


def onnx_times(text: str) -> list[float]:
    """Milliseconds of the runs in the result file of ``onnxruntime_perf_test``: model, seconds, memory, CPU, number."""
    rows = [line.split(",") for line in text.splitlines() if line.count(",") >= 4]
    return [float(row[-4]) * 1e3 for row in rows]


def executor_times(text: str) -> list[float]:
    """Milliseconds of the executions of the last program that ``executor_runner`` told of; older ones tell the mean."""
    totals = list(_TOTAL.finditer(text))
    if not totals:
        return []
    count = int(totals[-1][1])
    single = [float(one[1]) for one in _ITERATION.finditer(text, 0, totals[-1].start())][-count:]
    return single if len(single) == count else [float(totals[-1][2]) / count]


def tensor_proto(given: SentInput) -> bytes:
    """An input as the ``TensorProto`` that ``onnxruntime_perf_test`` reads. Raises: AceError(UNSUPPORTED)."""
    kind = _ONNX_TYPES.get(given.dtype)
    if kind is None:
        raise AceError.of(ErrorCode.UNSUPPORTED, f"ONNX has no input of type {given.dtype}")
    dims = b"".join(b"\x08" + _varint(size) for size in given.shape)  # field 1
    return dims + b"\x10" + _varint(kind) + b"\x4a" + _varint(len(given.content)) + given.content  # fields 2 and 9


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _tell_failure(artifact: SentArtifact, error: AceError, tell: Told) -> None:
    problem = error.problem
    if problem.code is ErrorCode.HOST and "cannot be reached" in problem.what:
        raise error
    told = {"what": problem.what, "why": problem.why, "remedy": problem.remedy, "code": str(problem.code)}
    tell({"kind": "failed", "index": artifact.index} | told)


@contextmanager
def _alone(device: Device, tell: Told) -> Iterator[None]:
    """One measurement at a time on a device: it is attached to this machine, so the lock is here."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    serial = re.sub(r"\W", "-", device.address)
    what, remedy = "Measurements on the device cannot take turns", "Set XDG_CACHE_HOME to a folder of your own"
    with explained(ErrorCode.SYSTEM, what, remedy=remedy):
        descriptor = open_lock(user_cache_folder() / f"adb-{serial}.lock")
    with os.fdopen(descriptor, "rb") as lock:
        is_told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                why = f"another measurement runs on {device.name}"
                tell(
                    {"kind": "progress", "detail": why, "fraction": None}
                    if is_told
                    else {"kind": "waiting", "why": why}
                )
                is_told = True
                time.sleep(_POLL_S)
        yield
