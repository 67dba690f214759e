"""``--host`` and ``--send``: what the user lets a command send to other machines; and the questions at a terminal."""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from ace_studio.cli.app import Console
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import EngineChoice, Recipe
from ace_studio.records.sending import Word, host_of
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore, hash_in

HostOption = Annotated[
    str, typer.Option("--host", help="The engine's machine, by ssh: user@name. The recipe's folder is sent there.")
]
SendOption = Annotated[
    list[Path] | None,
    typer.Option("--send", metavar="FILE", help="Let it be sent, wherever it lies and whatever it is; repeat it."),
]
_given: ContextVar[tuple[EngineChoice, Word]] = ContextVar("given", default=(EngineChoice(), Word()))
"""The machine that the options of this command name, and what they let it send."""


def may_send(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command ``--host`` and ``--send``; with ``--host``, ``--python`` names the Python there."""

    @functools.wraps(command)
    def with_options(host: str = "", send: list[Path] | None = None, **values: Any) -> int:
        engine = EngineChoice(host=host, python=values.get("python", "") if host else "")
        if engine.python:
            values["python"] = ""
        token = _given.set((engine, Word(hosts=(host,) if host else (), files=_paths(send))))
        try:
            return command(**values)
        finally:
            _given.reset(token)

    kinds = {"host": (HostOption, ""), "send": (SendOption, None)}
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
             for name, (kind, default) in kinds.items()]  # fmt: skip
    signature = inspect.signature(command, eval_str=True)
    with_options.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = command.__annotations__ | {name: kind for name, (kind, _) in kinds.items()}
    return with_options


def _paths(given: Sequence[Path] | None) -> tuple[str, ...]:
    return tuple(str(path.absolute()) for path in given or ())


def on_host(recipe: Recipe) -> Recipe:
    """The recipe with its engine on the machine of ``--host``, if that was given."""
    engine, own = _given.get()[0], recipe.engine
    if not engine.host:
        return recipe
    python = engine.python or (own.python if own.host == engine.host else "")
    return replace(recipe, engine=replace(own, host=engine.host, python=python))


def user_word(send: Sequence[Path] = (), hosts: Sequence[str] = ()) -> Word:
    """What the user lets be sent, by settings and by options."""
    kept, given = Settings(UserFolders.of_user().settings).word, _given.get()[1]
    return Word(hosts=(*kept.hosts, *given.hosts, *hosts), files=(*given.files, *_paths(send)))


def with_word(request: messages.AnyRequest) -> messages.AnyRequest:
    """A request to a host with what the user lets be sent there, also by a yes to an earlier question."""
    if not isinstance(request, messages.TraceRequest) or not request.recipe.engine.host:
        return request
    allowed = TrustStore(UserFolders.of_user().trust).sendings
    return replace(request, word=user_word(), trusted_sha256=(*request.trusted_sha256, *allowed))


def is_question(problems: Sequence[Problem]) -> bool:
    """Whether all that a job was refused for is files that would be sent, and a person is there to be asked."""
    return bool(problems) and all(host_of(hash_in(one)) for one in problems) and sys.stdin.isatty()


def ask(problems: Sequence[Problem], console: Console) -> None:
    """Show what would run and what would be sent, and trust it if a person at the terminal says so, file by file.

    Raises: AceError if there is no terminal, the list of what is trusted cannot be written, or an answer is no.
    """
    code = [one for one in problems if not host_of(hash_in(one))]
    sent = [one for one in problems if one not in code]
    for group in ([code] if code else []) + [[one] for one in sent]:
        for problem in group:
            console.say(problem.where, f"  {problem.why}", *(f"  {line}" for line in problem.details.split("\n")))
        if not sys.stdin.isatty():
            raise AceError.of(
                ErrorCode.UNTRUSTED,
                "Trust is given by a person at a terminal",
                why="the input of this command is not a terminal",
                remedy="Run the command in a terminal, or press Trust in the window.",
            )
        words = "May this code run, now and later, as long as it does not change?"
        if group is not code:
            words = f"May this be sent to {host_of(hash_in(group[0]))}, now and later, until the list of files changes?"
        if not typer.confirm(words, err=True):
            raise AceError.of(ErrorCode.UNTRUSTED, f"{group[0].where} was not trusted", why="the answer was no")
    store = TrustStore(UserFolders.of_user().trust)
    for problem in problems:
        store.trust(problem.where, hash_in(problem))
