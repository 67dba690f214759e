"""Problems in the language of the window. They are made where nothing is known of it, also in the engine's process."""

from msgspec.structs import replace

from ace_studio.gui.style import told, tr
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import RunStatus, TargetRun
from ace_studio.records.sending import host_of
from ace_studio.session.document import Document
from ace_studio.session.kept.trust import contents_of, hash_in


def told_problem(problem: Problem) -> Problem:
    """The problem with its sentences in the chosen language; place and details stay as they are."""
    return replace(problem, what=told(problem.what), why=told(problem.why), remedy=told(problem.remedy))


def problem_text(problem: Problem) -> str:
    """What, then why, remedy and where, each on its own line."""
    shown = told_problem(problem)
    labelled = ((tr("why"), shown.why), (tr("what helps"), shown.remedy), (tr("where"), shown.where))
    return "\n".join([shown.what, *(f"  {label}: {text}" for label, text in labelled if text)])


def not_run_words(run: TargetRun) -> str:
    """What is known of an artifact that could not be run where it was built."""
    return tr("not run, compared or timed: {why}", why=told(run.not_run))


def failed_targets(document: Document) -> list[tuple[Problem, str]]:
    """What ended each run that failed, with its target and plan; without what the job itself told."""
    if document.comparison is not None:
        return []
    failed = [run for run in document.runs if run.status is RunStatus.FAILED and run.error not in document.problems]
    return [(run.error, f"{run.target} {run.built_words}".strip()) for run in failed if run.error is not None]


def question_text(problem: Problem) -> str:
    """What the user is asked to allow: a file, or files that would be sent, with the list of them."""
    if not host_of(hash_in(problem)):
        return f"{told(problem.what)}: {problem.where}"
    return "\n".join([f"{told(problem.what)}: {told(problem.why)}", *problem.details.splitlines()[1:]])


def also_asked_for(document: Document) -> list[Problem]:
    """What the engine asked trust for, beside what a look at the file has shown."""
    shown = {sha256 for _, sha256 in contents_of(document.file)} if document.file is not None else set()
    asked = [problem for problem in document.problems if problem.code is ErrorCode.UNTRUSTED and problem.where]
    return [problem for problem in asked if hash_in(problem) not in shown]
