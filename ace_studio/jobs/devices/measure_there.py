"""Sent to a Python on a device with ``private_folder.py``: measures there. Standard library only, Python 3.8 and newer.

A runtime is imported only to open an artifact of its kind. stdin begins with one line of JSON, the order. This answers
with lines that begin with the mark, each a JSON object with ``kind``: ``need`` (contents that are not here yet, which
then come on stdin), ``waiting``, ``progress``, ``figure``, ``failed``, ``done``. When stdin ends, this ends.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import shlex
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Sequence  # noqa: UP035 - as Python 3.8 has them

from ace_studio.records.private_folder import (
    copy_if_same,
    open_lock,
    private_folder,
    temporary_base,
    timing_lock,
    use_private_caches,
    user_cache_folder,
)

MARK = "ace-studio-measure:"
CACHE_S = 7 * 86_400.0
"""Contents that were not used for so long are removed."""
MIN_SAMPLE_MS, LEAD_BELOW_MS = 1.0, 50.0
WARM_UP_CALLS, WARM_UP_MS, STABLE_SPREAD = 30, 2_000.0, 0.05
LEAST_ROUNDS = 5
OLDEST = (3, 8)
OPENVINO_OPTIONS = {
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": "1",
    "ENABLE_CPU_PINNING": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "CACHE_DIR": "",
}
"""As the engine has them; a test compares."""


class NotDoneHere(Exception):  # noqa: N818 - an answer
    """Why something cannot be done here: the code, what, why and remedy of a problem."""


def say(kind: str, **more: Any) -> None:
    """Send one line."""
    os.write(1, (MARK + json.dumps(dict(more, kind=kind)) + "\n").encode())


# --- what the machine is, and how it is now ---


def machine_words() -> str:
    """Name and processor of this machine."""
    named = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model", "Hardware") and value.strip():
                named = value.strip()
                break
    except OSError:
        pass
    return f"{platform.node()} ({named or platform.processor() or platform.machine()})"


def state(root: str = "/") -> dict[str, Any]:
    """Governor, mean frequency in MHz and highest temperature in °C; None where the system does not say."""
    cpus = Path(root) / "sys/devices/system/cpu"
    governors = [text for text in map(read, sorted(cpus.glob("cpu[0-9]*/cpufreq/scaling_governor"))) if text]
    kilohertz = [number(read(path)) for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")]
    megahertz = [one / 1e3 for one in kilohertz if one]
    if not megahertz:
        lines = read(Path(root) / "proc/cpuinfo").splitlines()
        found = [number(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
        megahertz = [one for one in found if one]
    heat = [*Path(root, "sys/class/thermal").glob("thermal_zone*/temp")]
    heat += Path(root, "sys/class/hwmon").glob("hwmon*/temp*_input")
    degrees = [one / 1e3 for one in (number(read(path)) for path in heat) if one is not None]
    degrees = [one for one in degrees if 0 < one < 150]  # an unused sensor says 0 or nonsense
    return {
        "governor": "/".join(sorted(set(governors))),
        "frequency_mhz": statistics.fmean(megahertz) if megahertz else None,
        "temperature_c": max(degrees) if degrees else None,
    }


def read(path: Path) -> str:
    """The text of a file of the system; empty if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def number(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


# --- one measurement at a time ---


def take_lock(path: Path) -> int | None:
    """Wait until no other measurement runs on this machine; says once that it waits. Held until this process ends."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("waiting", why=f"another measurement runs on {platform.node()}")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


# --- what came ---


def cache_folder() -> Path:
    """Where contents lie between measurements, by their hash."""
    return private_folder(user_cache_folder() / "measure-here")


def take_contents(wanted: Sequence[str], stream: IO[bytes]) -> dict[str, Path]:
    """Path of every content by its SHA-256: read from ``stream`` what is not here yet."""
    folder = cache_folder()
    for path in folder.iterdir():
        if path.name not in wanted and time.time() - path.stat().st_mtime > CACHE_S:
            path.unlink()
    missing = [sha256 for sha256 in wanted if not (folder / sha256).is_file()]
    say("need", sha256=missing)
    for sha256 in missing:
        size, digest = int(stream.readline()), hashlib.sha256()
        handle, name = tempfile.mkstemp(dir=str(folder))
        try:
            with os.fdopen(handle, "wb") as out:
                while size:
                    part = stream.read(min(size, 1 << 20))
                    if not part:
                        sys.exit(130)
                    digest.update(part)
                    out.write(part)
                    size -= len(part)
            if digest.hexdigest() != sha256:
                raise NotDoneHere("host", "A file did not arrive as it was sent", "its SHA-256 differs", "Try again")
            Path(name).replace(folder / sha256)
        finally:
            if Path(name).exists():
                Path(name).unlink()
    for sha256 in wanted:
        os.utime(str(folder / sha256))
    return {sha256: folder / sha256 for sha256 in wanted}


def laid_out(files: Sequence[dict[str, str]], contents: dict[str, Path], here: Iterable[str], folder: Path) -> Path:
    """The files of an artifact with the names that they need, beside each other in a private folder; returns the first.

    Those that came are linked from where they are kept. Those that were only hashed, because they lie ``here``, are
    copied and hashed again: what is opened is what was hashed.

    Raises: NotDoneHere if one has changed.
    """
    for one in files:
        source, place = contents[one["sha256"]], folder / one["name"]
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            if one["sha256"] not in here:
                os.link(str(source), str(place))
                continue
        except OSError:  # another file system, or one without links
            pass
        if not copy_if_same(source, place, one["sha256"]):
            what, why = f"{one['name']} changed while it was about to be measured", "its SHA-256 is another one now"
            raise NotDoneHere("bad-file", what, why, "Measure again when nothing writes to the folder of the run")
    return folder / files[0]["name"]


def arrays(inputs: Iterable[dict[str, Any]], contents: dict[str, Path]) -> list[Any]:
    """The inputs as NumPy arrays, in the memory layout that the graph needs."""
    numpy: Any = importlib.import_module("numpy")

    found = []
    for one in inputs:
        dtype = "uint16" if one["dtype"] == "bfloat16" else one["dtype"]
        array = numpy.frombuffer(contents[one["sha256"]].read_bytes(), dtype).reshape(one["shape"]).copy()
        order = one["order"]
        if order:
            array = numpy.ascontiguousarray(array.transpose(order)).transpose([order.index(at) for at in sorted(order)])
        found.append(array)
    return found


# --- the runtimes ---


def open_onnxruntime(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """A session of ONNX Runtime, with the options that the engine gives."""
    onnxruntime: Any = importlib.import_module("onnxruntime")

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = dict(zip([one.name for one in session.get_inputs()], given))  # noqa: B905 - since Python 3.10
    names = [one.name for one in session.get_outputs()]
    return lambda: session.run(names, feed)


def open_openvino(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """A model that OpenVINO compiled for this processor."""
    modules: dict[str, Any] = sys.modules
    modules.setdefault("openvino_telemetry", None)  # it would send usage data
    openvino: Any = importlib.import_module("openvino")

    options = dict(OPENVINO_OPTIONS, INFERENCE_NUM_THREADS=str(threads))
    core = openvino.Core()
    model = core.read_model(str(path))
    for key in ("INFERENCE_PRECISION_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE"):
        if model.has_rt_info(["ace_studio", key]):  # how it was measured; OpenVINO itself does not read it
            options[key] = str(model.get_rt_info(["ace_studio", key]).astype(str))
    request = core.compile_model(model, "CPU", options).create_infer_request()
    inputs = dict(enumerate(given))
    return lambda: request.infer(inputs, share_inputs=True, share_outputs=False)


def torch_inputs(given: Iterable[Any], inputs: Iterable[dict[str, Any]]) -> list[Any]:
    """The inputs as torch has them."""
    torch: Any = importlib.import_module("torch")

    made = [torch.from_numpy(one) for one in given]
    kinds = [told["dtype"] for told in inputs]
    return [one.view(torch.bfloat16) if kind == "bfloat16" else one for one, kind in zip(made, kinds)]  # noqa: B905


def open_eager(path: Path, given: list[Any], threads: int, *, compiled: bool = False) -> Callable[[], object]:
    """An exported program of torch."""
    torch: Any = importlib.import_module("torch")

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # makes the 8-bit operators known
    module: Any = torch.export.load(str(path)).module(check_guards=False)
    if compiled:
        torch._inductor.config.freezing = True
        module = torch.compile(module)
    return lambda: module(*given)


def open_inductor(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """The same, compiled by Inductor."""
    return open_eager(path, given, threads, compiled=True)


def open_aoti(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """A package of machine code."""
    torch: Any = importlib.import_module("torch")

    torch.set_num_threads(threads)
    os.environ["AOTI_RUNTIME_CHECK_INPUTS"] = "1"  # its code checks types and sizes only if asked
    package = torch._inductor.aoti_load_package(str(path))
    dense = [one.contiguous() for one in given]
    return lambda: package(*dense)


def open_executorch(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """A program of ExecuTorch."""
    portable_lib: Any = importlib.import_module("executorch.extension.pybindings.portable_lib")
    runtime: Any = importlib.import_module("executorch.runtime")

    if portable_lib._threadpool_get_thread_count() != threads:
        portable_lib._unsafe_reset_threadpool(threads)
    held = path.read_bytes()
    program = runtime.Runtime.get().load_program(held)
    method = program.load_method("forward")
    dense = [one.contiguous() for one in given]

    def call() -> object:
        assert held and program  # the method reads weights where they lie
        return method.execute(dense)

    return call


def open_litert(path: Path, given: list[Any], threads: int) -> Callable[[], object]:
    """A model of LiteRT."""
    interpreter: Any = importlib.import_module("ai_edge_litert.interpreter")

    model = interpreter.Interpreter(str(path), num_threads=threads)
    places = [one["index"] for one in model.get_input_details()]
    for place, array in zip(places, given):  # noqa: B905 - Python 3.7 has no strict
        model.resize_tensor_input(place, array.shape, strict=True)
    model.allocate_tensors()
    outputs = [one["index"] for one in model.get_output_details()]

    def call() -> object:
        for place, array in zip(places, given):  # noqa: B905 - as above
            model.set_tensor(place, array)
        model.invoke()
        return [model.get_tensor(place) for place in outputs]

    return call


RUNTIMES = {
    "onnxruntime": (open_onnxruntime, "onnxruntime", ("numpy",)),
    "openvino": (open_openvino, "openvino", ("numpy",)),
    "eager": (open_eager, "torch", ("numpy",)),
    "inductor": (open_inductor, "torch", ("numpy",)),
    "aoti": (open_aoti, "torch", ("numpy",)),
    "executorch": (open_executorch, "executorch", ("torch", "numpy")),
    "litert": (open_litert, "ai_edge_litert", ("numpy",)),
}
"""Runtime -> what opens its artifacts, its package, and what that needs besides."""


def version_of(package: str) -> str:
    """The version of a package that is installed; empty if it is not."""
    try:
        from importlib import metadata  # noqa: PLC0415 - the package itself would take seconds to import

        return metadata.version(package) if importlib.util.find_spec(package) else ""
    except Exception:  # noqa: BLE001 - a package without its metadata counts as missing, whatever it raises
        return ""


def install_line(packages: Iterable[str]) -> str:
    """What installs packages into this Python."""
    return f"{shlex.quote(sys.executable)} -m pip install {' '.join(map(shlex.quote, packages))}"


def opened(
    artifact: dict[str, Any], path: Path, inputs: list[dict[str, Any]], given: list[Any], threads: int
) -> Callable[[], object]:
    """A function that runs an artifact once. Raises: NotDoneHere if its runtime is missing, or does not take it."""
    opener, package, more = RUNTIMES[artifact["runtime"]]
    missing = [one for one in (package, *more) if not version_of(one)]
    if missing:
        wanted = [artifact["wanted"].get(one, one) for one in missing]
        what = f"{' and '.join(missing)} is not installed on {platform.node()}"
        raise NotDoneHere("not-installed", what, f"{sys.executable} cannot import it", install_line(wanted))
    try:
        if package in ("torch", "executorch"):
            given = torch_inputs(given, inputs)
        call = opener(path, given, threads)
        call()
    except Exception as error:  # a runtime raises errors of its own, and any kind of them
        kind = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
        what = f"{package} {version_of(package)} on {platform.node()} does not run the artifact"
        remedy = "Install the version that built it: " + install_line([artifact["wanted"].get(package, package)])
        raise NotDoneHere("unsupported", what, kind, remedy) from error
    return call


# --- the measurement ---


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Milliseconds that one of ``repeats`` calls takes."""
    start = time.perf_counter_ns()
    for _ in range(repeats):
        call()
    return (time.perf_counter_ns() - start) / 1e6 / repeats


def warm_up(call: Callable[[], object]) -> float:
    """Call until the last five times agree within 5 %, at most 30 times or 2 s; the median of those, ms."""
    times: list[float] = []
    spent = 0.0
    while len(times) < WARM_UP_CALLS and (spent < WARM_UP_MS or len(times) < 3):
        times.append(milliseconds(call, 1))
        spent += times[-1]
        last = times[-5:]
        if len(last) == 5 and max(last) - min(last) <= STABLE_SPREAD * statistics.median(last):
            break
    return statistics.median(times[-5:])


def measure(
    calls: dict[int, Callable[[], object]], rounds: int, budget_s: float
) -> dict[int, tuple[list[float], list[float]]]:
    """Samples of every call, by its index: milliseconds by the wall clock and by the processor's clock.

    All are measured in the same rounds; their order turns, so that each follows another as often as every other.
    """
    repeats: dict[int, int] = {}
    leading: set[int] = set()
    for index, call in calls.items():
        usual_ms = warm_up(call)
        repeats[index] = max(1, round(MIN_SAMPLE_MS / max(usual_ms, 1e-4)))
        if usual_ms < LEAD_BELOW_MS:
            leading.add(index)
    samples: dict[int, tuple[list[float], list[float]]] = {index: ([], []) for index in calls}
    order, until = list(calls), time.monotonic() + budget_s
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.monotonic() > until:
            break
        say("progress", detail=f"round {done + 1} of {rounds}", fraction=done / rounds)
        for index in order:
            call = calls[index]
            if index in leading:
                call()
            begin = time.process_time_ns()
            samples[index][0].append(milliseconds(call, repeats[index]))
            samples[index][1].append((time.process_time_ns() - begin) / 1e6 / repeats[index])
        order = order[1:] + order[:1] if done % 2 else order[::-1]
    return samples


def end_with_stdin(folder: str) -> None:
    """End this process when whoever asked is gone, and leave no artifacts in its temporary folder."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()


def tell(order: dict[str, Any]) -> None:
    """Say what is here, without measuring."""
    found = {name: version_of(row[1]) for name, row in RUNTIMES.items()}
    missing = {name: [p for p in (row[1], *row[2]) if not version_of(p)] for name, row in RUNTIMES.items()}
    say(
        "device",
        machine=machine_words(),
        version=platform.python_version(),
        runtimes={name: version for name, version in found.items() if not missing[name]},
        missing={
            name: install_line([order["wanted"].get(one, one) for one in packages])
            for name, packages in missing.items()
            if packages
        },
        state=state(),
    )


def run(order: dict[str, Any]) -> None:
    """Carry out the order."""
    if order.get("check"):
        tell(order)
        return
    contents = {sha256: Path(path) for sha256, path in order["here"].items()}
    wanted = {one["sha256"] for artifact in order["artifacts"] for one in artifact["files"]}
    wanted |= {one["sha256"] for one in order["inputs"]}
    if sorted(wanted - set(contents)):
        contents.update(take_contents(sorted(wanted - set(contents)), sys.stdin.buffer))
    with tempfile.TemporaryDirectory(prefix="ace-studio-measure-", dir=str(temporary_base())) as name:
        end_with_stdin(name)
        use_private_caches()
        held = take_lock(timing_lock())
        given = arrays(order["inputs"], contents) if version_of("numpy") else []
        carry_out(order, contents, given, Path(name))
        del held  # it is released when this process ends
    say("done")


def carry_out(order: dict[str, Any], contents: dict[str, Path], given: list[Any], folder: Path) -> None:
    """Open every artifact, measure those that open, and send the figures."""
    calls: dict[int, Callable[[], object]] = {}
    count = len(order["artifacts"])
    for place, artifact in enumerate(order["artifacts"]):
        index = artifact["index"]
        say("progress", detail=f"opening {artifact['label']}", fraction=None)
        try:
            path = laid_out(artifact["files"], contents, order["here"], folder / str(place))
            calls[index] = opened(artifact, path, order["inputs"], given, order["threads"])
        except NotDoneHere as refusal:
            code, what, why, remedy = refusal.args
            say("failed", index=index, code=code, what=what, why=why, remedy=remedy)
    before = state()
    samples = measure(calls, order["rounds"], order["budget_s"] * max(1, count)) if calls else {}
    after = state()
    packages = {one["index"]: RUNTIMES[one["runtime"]][1] for one in order["artifacts"]}
    for index, (wall_ms, cpu_ms) in samples.items():
        runtime = f"{packages[index]} {version_of(packages[index])}"
        told = {"index": index, "wall_ms": wall_ms, "cpu_ms": cpu_ms, "runtime": runtime}
        say("figure", **told, machine=machine_words(), before=before, after=after)


def main() -> int:
    """Carry out the order on stdin; returns the exit code."""
    if sys.version_info < OLDEST:
        sys.stderr.write(f"ACE Studio needs Python 3.8 or newer to measure; this is {platform.python_version()}\n")
        return 3
    order = json.loads(sys.stdin.buffer.readline().decode())
    try:
        run(order)
    except NotDoneHere as refusal:
        code, what, why, remedy = refusal.args
        say("failed", index=None, code=code, what=what, why=why, remedy=remedy)
    except OSError as error:  # a full disk, or a folder that cannot be written
        what = f"A file could not be written on {platform.node()}"
        remedy = "Make room there, or set XDG_CACHE_HOME and TMPDIR there to folders of your own with room"
        say("failed", index=None, code="system", what=what, why=str(error), remedy=remedy)
    return 0


if __name__ == "__main__":
    ended = main()
    sys.stderr.flush()
    os._exit(ended)  # some runtimes hang or crash while they are taken down
