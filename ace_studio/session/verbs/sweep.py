"""The verbs about sweeps: choose what a sweep is to do, start it, stop it, and go on with it."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from ace_studio.records import sweeps
from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.recipes.file import parse_toml, read_recipe_text, recipe_text
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.safe_file import file_sha256, read_or_none, write_atomically
from ace_studio.records.sending import host_of
from ace_studio.records.sweep_file import RECIPE_KEY, checked_documents, checked_sweep, sweep_cells, sweep_text
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore, hash_in
from ace_studio.session.state import SessionState
from ace_studio.session.sweep_state import SweepPhase, SweepPreview, SweepState
from ace_studio.session.verbs.history import HistoryVerbs


class SweepLink(Protocol):
    """What the session needs to run a sweep. Events come back through `SweepVerbs.apply`."""

    def start(self, order: sweeps.SweepOrder) -> None:
        """Start one; a `SweepEnded` is the last event. Raises: OSError."""

    def stop(self) -> None:
        """Ask it to stop and to keep what is done."""


class SweepVerbs:
    """One sweep at a time, of the open choices or of a file. It goes on while another model is opened."""

    def __init__(
        self,
        state: SessionState,
        history: HistoryVerbs,
        trust: TrustStore,
        settings: Settings,
        link: SweepLink | None,
    ) -> None:
        self._state = state
        self._history = history
        self._trust = trust
        self._settings = settings
        self._link = link
        self._previewed: tuple[object, SweepPreview] = (None, SweepPreview())
        self._heard = set[str]()
        """Hashes that the sweeps of this window asked for."""
        self.clock: Callable[[], float] = time.monotonic

    @property
    def _now(self) -> SweepState:
        return self._state.document.sweep

    def _change(self, **values: Any) -> None:
        self._state.change(sweep=replace(self._now, **values))

    # --- what it is to do ---

    def open_file(self, path: str | Path) -> None:
        """Take what a file of a sweep says, and show the results that its folder has."""
        file = Path(path).expanduser().absolute()
        with self._state.reporting():
            text = read_recipe_text(file)
            sweep = checked_sweep(parse_toml(text, file.name), name=file.name, text=text)
            self._change(sweep=sweep, path=str(file), text=text, out="")
            self.read_results()

    def use_open_choices(self) -> None:
        """Make it a sweep of the choices that are open; the axes stay."""
        self._change(sweep=replace(self._now.sweep, recipes=(), exclude=()), path="", text="", out="")
        self.read_results()

    def set_axis(self, axis: sweeps.Axis, values: tuple[sweeps.AxisValue, ...]) -> None:
        """Set the values of an axis; without values there is no such axis. Exclusions that name others go."""
        now = self._now.sweep
        axes = {one: values if one is axis else now.axes.get(one, ()) for one in (*now.axes, axis)}
        axes = {one: found for one, found in axes.items() if found}
        known = {str(one): found for one, found in axes.items()} | {RECIPE_KEY: now.recipes}
        kept = [one for one in now.exclude if all(value in known.get(key, ()) for key, value in one.items())]
        self._change(sweep=replace(now, axes=axes, exclude=tuple(kept)), text="")

    def add_recipes(self, paths: Sequence[str | Path]) -> None:
        """Add recipes to those of its file, or to that of the open choices."""
        document, now = self._state.present, self._now
        with self._state.reporting():
            recipes = list(now.sweep.recipes)
            if not recipes and document.recipe.model.source:
                self._require_saved()
                recipes.append(str(Path(document.recipe_path).absolute()))
            for path in paths:
                read_recipe_text(Path(path))
                added = str(Path(path).absolute())
                recipes.append(relative_to(Path(added), Path(now.path).parent) if now.path else added)
            self._change(sweep=replace(now.sweep, recipes=tuple(dict.fromkeys(recipes))), text="")

    def remove_recipes(self, recipes: Sequence[str]) -> None:
        """Take recipes out, with the exclusions that name them; without any it is about the open choices."""
        now = self._now.sweep
        left = tuple(one for one in now.recipes if one not in recipes)
        if not left:
            self.use_open_choices()
            return
        exclude = tuple(one for one in now.exclude if one.get(RECIPE_KEY) not in recipes)
        self._change(sweep=replace(now, recipes=left, exclude=exclude), text="")

    def set_exclusions(self, exclude: tuple[dict[str, sweeps.AxisValue], ...]) -> None:
        """Leave out the jobs with all values of one of these. Raises: AceError(RECIPE) if an axis has no such value."""
        made = replace(self._now.sweep, exclude=exclude)
        whole = made if made.recipes else replace(made, recipes=("recipe.toml",))
        checked_sweep(msgspec.to_builtins(whole), name="the sweep")
        self._change(sweep=made, text="")

    def _require_saved(self) -> None:
        document = self._state.present
        if not document.recipe_path or document.is_dirty:
            raise AceError.of(
                ErrorCode.USAGE, "The sweep names the recipe, which is not saved", remedy="Save the recipe first"
            )

    def set_place(self, **values: str | int) -> None:
        """Set where the results go, where the jobs run, and where they are logged: fields of `SweepState`."""
        self._change(**values)
        if "out" in values:
            self.read_results()

    def save(self, path: str | Path) -> None:
        """Write it as a file, which names the recipe of the open choices if it is about these."""
        file = Path(path).expanduser().absolute()
        with self._state.reporting():
            sweep, folder, _ = self._whole()
            if not self._now.sweep.recipes:
                self._require_saved()
            recipes = tuple(relative_to(Path(folder, recipe), file.parent) for recipe in sweep.recipes)
            sweep = replace(sweep, recipes=recipes)
            text = sweep_text(sweep)
            with explained(ErrorCode.NOT_FOUND, "The sweep could not be saved", where=file):
                write_atomically(file, text.encode())
            self._change(sweep=sweep, path=str(file), text=text)

    def _whole(self) -> tuple[sweeps.Sweep, str, dict[str, str]]:
        """The sweep with its recipes, the folder that these are relative to, and the texts that are in no file."""
        document, now = self._state.present, self._now
        if now.sweep.recipes:
            return now.sweep, str(Path(now.path).parent), {}
        name = Path(document.recipe_path).name or "recipe.toml"
        return replace(now.sweep, recipes=(name,)), document.folder, {name: recipe_text(document.recipe)}

    @property
    def out(self) -> str:
        """The folder for all results: the chosen one, or one beside the file of the sweep or beside the model."""
        document, now = self._state.present, self._now
        if now.out:
            return now.out
        if now.path:
            return str(Path(now.path).with_suffix("")) + "-results"
        stem = Path(document.title).stem or "model"
        return str(Path(document.saving_folder or Path.home()) / f"{stem}-sweep")

    def preview(self) -> SweepPreview:
        """What it would do: the number of its jobs, and how long they take by earlier runs."""
        document, now = self._state.present, self._now
        asked = (now.sweep, now.path, document.recipe, document.recipe_path, document.folder, len(now.rows))
        if asked != self._previewed[0]:
            self._previewed = asked, self._preview()
        return self._previewed[1]

    def _preview(self) -> SweepPreview:
        now = self._now
        if not now.sweep.recipes and not self._state.present.recipe.model.source:
            return SweepPreview()
        sweep, folder, texts = self._whole()
        name = Path(now.path).name or "the sweep"
        try:
            cells = sweep_cells(sweep, name=name)
            documents = checked_documents(sweep, Path(folder), name=name, text=now.text, texts=texts)
        except AceError as error:
            return SweepPreview(problems=error.problems)
        # Dask's scheduler knows how many jobs it runs at once, and this machine what fits it.
        recipes = {one: msgspec.convert(found, Recipe) for one, found in documents.items()}
        threads = sweep.axes.get(sweeps.Axis.THREADS) or [one.measure.threads for one in recipes.values()]
        usual = {
            one: self._history.store.usual_seconds(Path(folder, one).parent, found.model.source)
            for one, found in recipes.items()
        }
        times = [usual[recipe] for recipe, _ in cells]
        known = [seconds for seconds in times if seconds is not None]
        peaks = [self._history.store.usual_memory(Path(folder, one).parent, found.model.source)
                 for one, found in recipes.items()]  # fmt: skip
        words = [one for one in threads if isinstance(one, int | str)]
        at_once = 1 if now.scheduler else _at_once(words, peaks, now.workers)
        at_once = min(at_once, len(cells))
        return SweepPreview(
            jobs=len(cells),
            combinations=len(cells) if not sweep.exclude else len(sweep_cells(replace(sweep, exclude=()), name=name)),
            at_once=at_once,
            seconds=sum(known) / at_once if known else None,
            unknown=len(times) - len(known),
        )

    # --- start, stop, results ---

    def start(self) -> None:
        """Start it, or go on with what its folder has: jobs with a result are kept."""
        with self._state.reporting():
            if self._now.is_running:
                return
            preview = self.preview()
            if preview.problems:
                raise AceError(*preview.problems)
            if self._link is None:
                raise AceError.of(ErrorCode.UNSUPPORTED, "No sweep can be started from here")
            sweep, folder, texts = self._whole()
            now = self._now
            order = sweeps.SweepOrder(
                sweep=sweep, folder=folder, texts=texts, out=self.out, scheduler=now.scheduler, workers=now.workers,
                interpreter=self._settings.chosen_interpreter(folder), trusted_sha256=self._trust.hashes,
                contain=self._settings.contain, mlflow=now.mlflow, word=self._settings.word,
            )  # fmt: skip
            with explained(ErrorCode.NOT_FOUND, "The sweep could not be started"):
                self._link.start(order)
            self._change(
                phase=SweepPhase.RUNNING, started_s=self.clock(), at_work={}, rows=(), rows_of=self.out, done=0,
                total=preview.jobs, at_once=0, remaining_s=None, is_lost=False, status=None, problems=(),
            )  # fmt: skip

    def stop(self) -> None:
        """End the running jobs and keep what is done."""
        if self._link is not None and self._now.phase is SweepPhase.RUNNING:
            self._link.stop()
            self._change(phase=SweepPhase.STOPPING)

    def apply(self, event: sweeps.JobAdvanced | sweeps.SweepAdvanced | sweeps.SweepEnded) -> None:
        """Take in what the sweep tells."""
        now = self._now
        match event:
            case sweeps.JobAdvanced():
                self._change(at_work=now.at_work | {event.job: event})
            case sweeps.SweepAdvanced(row=row):
                if row is not None and row.error is not None:
                    self._heard.add(hash_in(row.error))
                came = event.kept if row is None else (row,)
                ended = {one.job for one in came}
                self._change(
                    rows=(*(one for one in now.rows if one.job not in ended), *came),
                    at_work={job: one for job, one in now.at_work.items() if job not in ended},
                    done=event.done, total=event.total, at_once=event.workers, remaining_s=event.remaining_s,
                    is_lost=event.is_lost,
                )  # fmt: skip
            case sweeps.SweepEnded(report=report, problems=problems):
                rows = report.rows if report is not None else ()
                self._heard |= {hash_in(one) for one in (*problems, *(row.error for row in rows if row.error))}
                values = _shown(report) if report is not None else {}
                self._change(phase=SweepPhase.IDLE, at_work={}, remaining_s=None, problems=problems, **values)
                self._state.report(*(one for one in problems if one.code is not ErrorCode.CANCELLED))
                if self._state.document.history is not None:
                    self._history.load_history()

    def read_results(self) -> None:
        """Show the rows of an earlier sweep in the folder for the results, if it has any."""
        if self._now.is_running:
            return
        report = read_or_none(Path(self.out) / sweeps.SWEEP_NAME, sweeps.SweepReport)
        if report is None:
            self._change(rows=(), rows_of="", status=None, done=0, total=0)
        else:
            self._change(rows_of=self.out, **_shown(report))

    # --- trust ---

    def asked(self) -> tuple[Problem, ...]:
        """What the user may allow, so that refused jobs run: code that is here as it was then, and files to be sent.

        What a file of results says of files to be sent does not count: anybody may have written it.
        """
        problems = (*self._now.problems, *(one.error for one in self._now.rows if one.error is not None))
        found = {hash_in(one): one for one in problems if one.code is ErrorCode.UNTRUSTED}
        return tuple(
            one
            for sha256, one in found.items()
            if not self._trust.is_trusted(sha256)
            and (sha256 in self._heard if host_of(sha256) else _is_here(one.where, sha256))
        )

    def trust_refused(self) -> None:
        """Let the refused files run as they are, and go on."""
        with self._state.reporting():
            for one in self.asked():
                if not self._trust.trust_covered(one.where, hash_in(one)):
                    self._trust.trust(one.where, hash_in(one))
            self.start()


def _at_once(threads: list[int | str], peaks: list[int | None], most: int) -> int:
    from ace_studio.jobs.cores import bytes_of_job, workers_here  # noqa: PLC0415 - not needed for the first picture

    return min(len(workers_here(threads, bytes_per_job=max(map(bytes_of_job, peaks)))), most or 10_000)


def _shown(report: sweeps.SweepReport) -> dict[str, Any]:
    ended = tuple(_ended(report.rows))
    return {"rows": ended, "done": len(ended), "total": len(report.rows), "status": report.status}


def _ended(rows: tuple[sweeps.SweepRow, ...]) -> Iterator[sweeps.SweepRow]:
    return (one for one in rows if one.status not in {sweeps.RowStatus.WAITING, sweeps.RowStatus.CANCELLED})


def _is_here(path: str, sha256: str) -> bool:
    try:
        return bool(sha256) and file_sha256(Path(path)) == sha256
    except OSError:
        return False
