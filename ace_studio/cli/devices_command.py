"""``devices`` and ``measure``: the list of devices, and the latency of a run's artifacts on one of them."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ace_studio.cli.app import Console, JsonFlag, app
from ace_studio.cli.follow import kept_runner
from ace_studio.cli.running import named_run
from ace_studio.cli.show_result import show_on_devices
from ace_studio.cli.user_word import SendOption, user_word
from ace_studio.jobs.devices.measuring import check_device, measure_on
from ace_studio.records.devices import Device, DeviceCheck, DeviceKind, make_device
from ace_studio.records.errors import ExitCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.results import INPUTS_NAME, REPORT_NAME, RESULT_NAME
from ace_studio.records.roots import present
from ace_studio.session.device_figures import keep_figures, run_in, trust_in
from ace_studio.session.kept.devices import DeviceList
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore

devices_app = typer.Typer(help="The devices to measure on: this machine, hosts by ssh, phones by adb.")
app.add_typer(devices_app, name="devices")
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the device is called.")]


@devices_app.command(name="list")
def list_devices(as_json: JsonFlag = False) -> int:
    """List the devices."""
    console = Console(as_json=as_json)
    devices, problem = DeviceList.of_user().read()
    if problem is not None:
        console.show_problems((problem,))
    return console.answer(devices, _show_devices, document={"format": 1, "devices": devices})


@devices_app.command(name="add")
def add_device(
    name: NameArgument,
    address: Annotated[str, typer.Argument(help="user@box, adb:SERIAL, or here for another Python of this machine.")],
    python: Annotated[str, typer.Option(help="Its Python there; python3 if none is named.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Add a device to the list."""
    console, device = Console(as_json=as_json), make_device(name, address, python)
    DeviceList.of_user().add(device)
    console.say(f"See what it has: ace-studio devices check {name}")
    return console.answer((device,), _show_devices, document={"format": 1, "device": device})


@devices_app.command(name="remove")
def remove_device(name: NameArgument, as_json: JsonFlag = False) -> int:
    """Take a device out of the list; its figures stay."""
    console, devices = Console(as_json=as_json), DeviceList.of_user()
    devices.remove(name)
    return console.answer(devices.read()[0], _show_devices, document={"format": 1, "removed": name})


@devices_app.command(name="check")
def check(name: NameArgument, as_json: JsonFlag = False) -> int:
    """Say what a device has for measuring, and the lines that install what is missing."""
    report = check_device(DeviceList.of_user().get(name))
    document = {"format": 1, **msgspec.to_builtins(report)}
    return Console(as_json=as_json).answer(report, _show_report, document=document)


@app.command(name="measure")
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of the history, or a folder that one wrote.")],
    device: Annotated[str, typer.Option("--device", help="Its name in the list of devices.")],
    index: Annotated[
        int | None,
        typer.Option("--run", help="Index in `runs` of result.json, from 0; else all that have an artifact."),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Open artifacts of torch, which hold code, though no run of yours wrote them."),
    ] = False,
    send: SendOption = None,
    as_json: JsonFlag = False,
) -> int:
    """Measure the artifacts of a finished run on a device."""
    console, found = Console(as_json=as_json), DeviceList.of_user().get(device)
    history = History.open_default()
    past = named_run(run)
    folder = present.get().writable(Path(run if past is None else past.summary.output) / RESULT_NAME).parent
    present.get().writable(folder / REPORT_NAME)
    present.get().readable(folder / INPUTS_NAME)
    result = run_in(folder, None if past is None else past.result)
    indices = () if index is None else (index,)

    runner = kept_runner.get()
    if runner is not None:
        runner.allow(found.address if found.kind is DeviceKind.SSH else "")

    def tell(event: dict[str, Any]) -> None:
        progress = Progress(
            phase=Phase.MEASURE, detail=event.get("why") or event["detail"], fraction=event.get("fraction")
        )
        if runner is not None:
            runner.told(progress)
        if event["kind"] == "waiting":
            console.say(f"Waiting: {event['why']}")
        else:
            console.show_progress(progress)

    with console.progress():
        store = TrustStore(UserFolders.of_user().trust)
        is_trusted = (lambda _sha256: True) if trust else trust_in(folder, history, store)
        word = user_word(send or ())
        measured = measure_on(found, result, folder, indices=indices, is_trusted=is_trusted, tell=tell, word=word)
    problems = [problem for _, problem in sorted(measured.problems.items())]
    if measured.figures:
        result = keep_figures(folder, result, measured.figures, history)
    document = {
        "format": 1,
        "status": "failed" if problems else "ok",
        "device": found,
        "figures": [{"run": at, **msgspec.to_builtins(one)} for at, one in sorted(measured.figures.items())],
        "errors": problems,
    }
    console.answer(result, show_on_devices, document=document)
    console.show_problems(problems)
    return problems[0].exit_code if problems else ExitCode.DONE


def _show_devices(devices: tuple[Device, ...], console: Console) -> None:
    rows = [(device.name, str(device.kind), device.place, device.python) for device in devices]
    console.print_table(("name", "reached by", "address", "Python"), rows)


def _show_report(report: DeviceCheck, console: Console) -> None:
    console.print(f"{report.name}: {report.machine}, {report.version}")
    now = []
    if report.governor:
        now.append(f"governor {report.governor}")
    if report.frequency_mhz is not None:
        now.append(f"{report.frequency_mhz:.0f} MHz")
    if report.temperature_c is not None:
        now.append(f"{report.temperature_c:.0f} °C")
    if now:
        console.print(", ".join(now))
    rows = [*report.runtimes.items(), *((name, f"missing: {line}") for name, line in report.missing.items())]
    console.print_table(("artifacts of", "runtime"), rows)
    console.print(f"Asked in {report.seconds:.1f} s.")
