"""``ace-studio sweep``: many runs from recipes and axes, here or on a Dask cluster, and one comparison."""

from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

import typer
from msgspec.structs import replace

from ace_studio.cli.app import Console, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import chosen_python, kept_runner
from ace_studio.cli.user_word import SendOption, user_word
from ace_studio.jobs.sweep_process import SweepProcess
from ace_studio.records import sweeps
from ace_studio.records.errors import AceError, ExitCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.results.words import ms_words, ratio_words
from ace_studio.records.sweep_file import read_jobs, read_sweep
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.trust import TrustStore


@app.command(name="sweep")
def run_sweep_file(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    paths: Annotated[list[Path], typer.Argument(metavar="SWEEP", help="A sweep (.toml), or recipes.")],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for all results; a sweep that was stopped goes on there.")
    ] = Path("ace-output/sweep"),
    scheduler: Annotated[str, typer.Option(help="Address of a Dask scheduler; else all cores of this machine.")] = "",
    workers: Annotated[int, typer.Option(help="Most jobs at once on this machine; 0: as cores and memory allow.")] = 0,
    mlflow: Annotated[str, typer.Option(help="Address of an MLflow server to log the jobs to.")] = "",
    hosts: Annotated[
        list[str] | None, typer.Option("--host", help="A machine that recipes may name for the engine; repeat it.")
    ] = None,
    send: SendOption = None,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Run every combination of recipes and axes, and compare all of them."""
    console = Console(as_json=as_json)
    jobs, runner = read_jobs(paths), kept_runner.get()
    sweep, folder, _, _ = read_sweep(paths)
    order = sweeps.SweepOrder(sweep=sweep, folder=str(folder.absolute()), out=str(out.absolute()), workers=workers)
    with console.progress():
        if runner is not None:
            ended = runner.sweep(order, lambda event: _say(event, console), jobs=jobs)
        else:
            order = replace(
                order, scheduler=scheduler, mlflow=mlflow, trust=trust, word=user_word(send or (), hosts or ()),
                trusted_sha256=TrustStore(UserFolders.of_user().trust).sendings,
                interpreter=chosen_python(paths[0].absolute()),
            )  # fmt: skip
            ended = _follow(order, console)
    if ended.report is None:
        raise AceError(*ended.problems)
    console.answer(ended.report, lambda found, to: show_sweep(found, to, out))
    return exit_code(ended.report)


def _follow(order: sweeps.SweepOrder, console: Console) -> sweeps.SweepEnded:
    """Run a sweep in a process of its own; Ctrl-C stops it, and what is done is kept."""
    events: SimpleQueue[sweeps.SweepEvent | sweeps.SweepEnded] = SimpleQueue()
    process = SweepProcess(order, events.put)
    while True:
        try:
            event = events.get()
            if isinstance(event, sweeps.SweepEnded):
                return event
            _say(event, console)
        except KeyboardInterrupt:
            process.stop()


def _say(event: sweeps.SweepEvent, console: Console) -> None:
    if isinstance(event, sweeps.JobAdvanced):
        console.show_progress(Progress(phase=Phase(event.phase), detail=f"job {event.job}"))
        return
    if event.is_lost:
        console.say("The scheduler does not answer and is looked for; the jobs go on there. Ctrl-C ends the search")
        return
    left = "" if event.remaining_s is None else f", about {event.remaining_s:.0f} s left"
    if event.row is None:
        console.say(f"{event.done} of {event.total} jobs are done; {event.workers} at once")
    else:
        console.say(f"{event.done} of {event.total}: job {event.row.job}, {_words(event.row)}{left}")


def _words(row: sweeps.SweepRow) -> str:
    about = ", ".join(f"{axis} {value}" for axis, value in row.axes.items()) or row.recipe
    if row.latency_ms is None:
        return f"{about}: {row.status}{f', {row.error.what}' if row.error else ''}"
    return f"{about}: {row.target} {row.precision}, {ms_words(row.latency_ms)} ms"


def show_sweep(report: sweeps.SweepReport, console: Console, out: Path) -> None:
    """Print the table; rows on the front have a star."""
    axes = list(dict.fromkeys(axis for row in report.rows for axis in row.axes))
    has_recipes = len({row.recipe for row in report.rows}) > 1
    columns = ["job", *(["recipe"] if has_recipes else []), *axes, "", "chosen", "p50 ms", "speed-up", "vs fp32"]
    columns += ["metric", "SQNR dB", "size MB", "goal"]
    rows = []
    for row in report.rows:
        first = [row.job, *([row.recipe] if has_recipes else []), *(row.axes.get(axis, "") for axis in axes)]
        if row.latency_ms is None:
            rows.append([*first, "", str(row.status), row.error.what if row.error else ""])
            continue
        figures = (
            ms_words(row.latency_ms),
            ratio_words(row, "speedup"),
            ratio_words(row, "float_speedup"),
            "" if row.metric is None else f"{row.metric:.4f}",
            "" if row.fidelity is None else f"{row.fidelity:.1f}",
            "" if row.size_bytes is None else f"{row.size_bytes / 1e6:.3f}",
            "" if row.goal_met is None else "met" if row.goal_met else "not met",
        )
        rows.append([*first, "*" if row.on_front else "", f"{row.target} {row.precision}", *figures])
    console.print_table(columns, rows)
    done = sum(row.status is sweeps.RowStatus.DONE for row in report.rows)
    console.print(f"{done} of {len(report.rows)} jobs have a result; *: on the front")
    console.print(f"{out / 'sweep.html'}, sweep.csv, sweep.json")


def exit_code(report: sweeps.SweepReport) -> int:
    """0 if every job has a result; else that of what stopped the first one that has none."""
    if report.status is sweeps.SweepStatus.CANCELLED:
        return ExitCode.CANCELLED
    without = [row for row in report.rows if row.status is not sweeps.RowStatus.DONE]
    if not without:
        return ExitCode.DONE
    return without[0].error.exit_code if without[0].error else ExitCode.JOB_FAILED
