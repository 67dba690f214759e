"""The verbs about A and B: pin them, swap and clear them, and show every panel as their difference."""

from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.messages import AnyEvent, FileInspected, FileReport, JobFailed, JobFinished, ModelCaptured
from ace_studio.records.recipes.file import parse_recipe, read_recipe_text, recipe_text
from ace_studio.records.results import decode_result
from ace_studio.records.safe_file import read_plain
from ace_studio.session.comparison.sides import Pin, PinnedPair, PinnedSide, comparison_of
from ace_studio.session.document import Document, Selection
from ace_studio.session.kept.graphs import KeptGraph
from ace_studio.session.kept.settings import Settings
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.history import HistoryVerbs
from ace_studio.session.verbs.jobs import JobVerbs

_KEY = "pins"
Pins = tuple[Pin | None, Pin | None]


class ComparisonVerbs:
    """A is the reference. Both are remembered with the model that is open."""

    def __init__(self, state: SessionState, history: HistoryVerbs, jobs: JobVerbs, settings: Settings) -> None:
        self._state = state
        self._history = history
        self._jobs = jobs
        self._settings = settings
        self.job = ""
        """The job that captures a model that is to be pinned; its findings are not about the open model."""
        self._asked = 0, Path()
        """The side and the file of that job."""
        self._found: ModelCaptured | None = None
        self._captured: dict[str, KeptGraph] = {}
        """Fingerprint -> graph of a file that was pinned: writing it down takes a while."""

    def pin_run(self, side: int, run_id: int, *, row: int | None = None) -> None:
        """Pin a run of the history as A (0) or B (1), or one result row of it."""
        with self._state.reporting():
            past = self._history.store.get(run_id)
            summary, runs = past.summary, past.result.runs
            when = f"{datetime.fromisoformat(summary.date).astimezone():%Y-%m-%d %H:%M}"
            if row is None or row >= len(runs):
                best = f"best {summary.target} {summary.precision}" if summary.target else summary.status
                self._pin(side, Pin(name=f"{summary.label}, {best}, {when}", run_id=run_id))
            else:
                words = f"{runs[row].target} {runs[row].built_words}"
                self._pin(side, Pin(name=f"{summary.label}, {words}, {when}", run_id=run_id, row=row))

    def pin_shown(self, side: int, *, row: int | None = None) -> None:
        """Pin what is shown: the run with these results, or one row of it, or without results plan and capture."""
        document = self._state.document
        comparison = document.comparison
        with self._state.reporting():
            if comparison is not None and row is not None and row < len(comparison.runs):
                of = comparison.side_of(row)
                pin, at = comparison.pins[of], row - of * comparison.run_count
                words = f"{document.runs[row].target} {document.runs[row].built_words}"
                self._pin(side, pin if pin.row is not None else replace(pin, row=at, name=f"{pin.name}: {words}"))
            elif document.past is not None:
                self.pin_run(side, document.past.id, row=row)
            elif document.result is not None and (row is not None or not document.is_stale):
                self.pin_run(side, self._run_shown(document), row=row)
            else:
                self._pin(side, self._choices_pin(document))

    def pin_file(self, side: int, path: str | Path) -> None:
        """Pin a recipe, the ``result.json`` of a run, or a model, which the engine captures first."""
        file = Path(path).expanduser().absolute()
        if file.suffix not in (".json", ".toml"):
            self._asked = side, file
            self._capture(None)
            return
        with self._state.reporting():
            pin = Pin(name=f"{file.parent.name}/{file.name}", path=str(file))
            self._side(pin)  # say now what cannot be read
            self._pin(side, pin)

    def heard(self, event: AnyEvent) -> None:
        """Follow the job that captures a model that is to be pinned."""
        match event:
            case FileInspected(report=report):
                self._capture(report)
            case ModelCaptured():
                self._found = event
            case JobFinished() if (found := self._found) is not None:
                side, file = self._asked
                kept = self._captured[found.fingerprint] = KeptGraph(found.graph, found.sources, found.capture)
                self._history.graphs.keep(found.fingerprint, kept)
                self._pin(side, Pin(name=f"{file.parent.name}/{file.name}", fingerprint=found.fingerprint))
            case JobFailed(problems=problems):
                self._state.report(*problems)
            case _:
                pass

    def _capture(self, report: FileReport | None) -> None:
        self._found = None
        self.job = self._jobs.capture_beside(self._asked[1], report, partial(self.pin_file, *self._asked))

    def compare_runs(self, first: int, second: int) -> None:
        """Pin two runs of the history and show their difference, the first as the reference."""
        self.clear()
        self.pin_run(0, first)
        self.pin_run(1, second)
        self.show()

    def swap(self) -> None:
        """Make B the reference."""
        first, second = self._state.document.pins
        self._keep((second, first))

    def clear(self) -> None:
        """Forget both, and show the present choices and findings again."""
        self.hide()
        self._keep((None, None))

    def show(self) -> None:
        """Show in all panels what differs between A and B, until `hide`."""
        document = self._state.document
        first, second = document.pins
        if first is None or second is None:
            return
        with self._state.reporting():
            if document.activity.is_working:
                remedy = "Compare when it is done, or cancel it"
                raise AceError.of(ErrorCode.USAGE, "The engine is busy", remedy=remedy)
            pins = first, second
            self._state.look_at(self._document_of(comparison_of(pins, (self._side(first), self._side(second)))))

    def toggle(self) -> None:
        """Show the difference, or the present again."""
        self.show() if self._state.document.comparison is None else self.hide()

    def hide(self) -> None:
        """Show the present choices and findings again; both stay pinned."""
        if self._state.document.comparison is not None:
            self._state.look_back()

    def model_opened(self) -> None:
        """Bring back what was pinned with this model. One pin alone stays, to compare across models."""
        kept = self._kept()
        first, second = self._state.document.pins
        if kept is not None:
            self._state.change(pins=kept)
        elif first is not None and second is not None:
            self._state.change(pins=(None, None))

    def renamed(self, run_id: int, before: str, after: str) -> None:
        """A run is called otherwise: so are its pins, those of other models too."""
        for model, kept in self._settings.recall_all(_KEY).items():
            with suppress(msgspec.ValidationError), self._state.reporting():
                pins = msgspec.convert(kept, Pins)
                if (changed := _renamed(pins, run_id, before, after)) != pins:
                    self._settings.remember_newest(_KEY, model, msgspec.to_builtins(changed))
        pins = self._state.document.pins
        if (changed := _renamed(pins, run_id, before, after)) != pins:
            self._keep(changed)

    def _pin(self, side: int, pin: Pin) -> None:
        first, second = self._state.document.pins
        self._keep((pin, second) if side == 0 else (first, pin))

    def _keep(self, pins: Pins) -> None:
        is_shown = self._state.document.comparison is not None
        self._state.change(pins=pins)
        with self._state.reporting():
            kept = msgspec.to_builtins(pins) if any(pins) else None
            self._settings.remember_newest(_KEY, self._state.name, kept)
        if is_shown:
            self.show()

    def _kept(self) -> Pins | None:
        """What was pinned with the model that is open; None if nothing was."""
        try:
            pins: Pins | None = msgspec.convert(self._settings.recall_all(_KEY).get(self._state.name), Pins | None)
        except msgspec.ValidationError:
            return None  # the file was edited by hand
        return pins

    def _run_shown(self, document: Document) -> int:
        """The run of the history that wrote to the folder of the results that are shown."""
        found = next((run.id for run in self._history.store.list() if run.output == document.output), None)
        if found is None:
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                "These results are not in the history",
                why="they were removed, or the history could not be written",
                remedy="Pin the result file of their folder, or run again",
            )
        return found

    def _choices_pin(self, document: Document) -> Pin:
        if document.graph is not None and not document.is_capture_stale:
            kept = KeptGraph(document.graph, document.sources, document.capture)
            self._history.graphs.keep(document.fingerprint, kept)
            fingerprint, words = document.fingerprint, "plan and capture"
        else:
            fingerprint, words = "", "plan"
        plan = document.recipe.plan
        what = "from the goal" if plan.from_goal else str(plan.default)
        return Pin(
            name=f"{document.title}, {words}, {what}",
            recipe_toml=recipe_text(document.recipe),
            fingerprint=fingerprint,
        )

    def _side(self, pin: Pin) -> PinnedSide:
        """What is known of a pinned side. Raises: AceError if its run or file is gone."""
        folder, fingerprint, result, text = "", pin.fingerprint, None, pin.recipe_toml
        if pin.run_id:
            past = self._history.store.get(pin.run_id)
            result, text, folder = past.result, past.recipe_toml, past.folder
        elif pin.path.endswith(".json"):
            what = f"{pin.path} is no result of a run"
            remedy = "Choose the result.json that a run wrote into its folder, or a recipe"
            with explained(ErrorCode.BAD_FILE, what, remedy=remedy, of=(OSError, msgspec.DecodeError)):
                result = decode_result(read_plain(Path(pin.path)))
            own = self._history.store.own_run(result)
            text, folder = result.recipe, own.folder if own is not None else ""  # the file's word for it is anybody's
        elif pin.path:
            text = read_recipe_text(Path(pin.path))
        fingerprint = result.fingerprint if result else fingerprint
        graph = self._captured.get(fingerprint) or self._history.graph_of(fingerprint)
        return PinnedSide(
            recipe=parse_recipe(text, name=pin.name) if text else None,
            graph=graph.graph if graph else None,
            sources=graph.sources if graph else {},
            capture=result.capture if result else graph.capture if graph else None,
            result=result,
            folder=folder,
        ).of_row(pin.row)

    def _document_of(self, found: PinnedPair) -> Document:
        """All panels show the second side, with the runs of both and the merged graph."""
        first, second = found.sides
        present = self._state.present
        result = second.result or first.result
        recipe = second.recipe or first.recipe or present.recipe
        chosen = second.result.chosen if second.result else None
        is_first_alone = second.graph is None and second.result is None
        selected = Selection(run=None if chosen is None else found.run_count + chosen)
        missing = [
            Problem(
                code=ErrorCode.NOT_FOUND,
                what=f"{name} has no graph to compare",
                why="it was not captured, or its graph is not kept any more",
                remedy="Trace it or run it again, and pin it anew",
            )
            for name, side, other in (("A", first, second), ("B", second, first))
            if side.graph is None and other.graph is not None
        ]
        is_same_model = recipe.model == present.recipe.model
        return self._state.fresh(
            recipe if recipe.model.source else replace(recipe, model=present.recipe.model),
            comparison=found,
            file=present.file if is_same_model else None,
            is_trusted=is_same_model and present.is_trusted,
            folder=second.folder or first.folder or present.folder,
            graph=found.merged.table if found.merged else None,
            sources=first.sources | second.sources,
            capture=first.capture if is_first_alone else second.capture,
            baseline=result.baseline if result is not None else None,
            runs=found.runs,
            run_numbers=tuple(range(len(found.runs))),
            result=None if result is None else replace(result, runs=found.runs, chosen=selected.run),
            selection=selected,
            problems=tuple(missing),
        )


def _renamed(pins: Pins, run_id: int, before: str, after: str) -> Pins:
    first, second = (
        replace(pin, name=after + pin.name.removeprefix(before))
        if pin is not None and pin.run_id == run_id and pin.name.startswith(f"{before},")
        else pin
        for pin in pins
    )
    return first, second
