"""The verbs about trust: let the opened files run, and withdraw that."""

from __future__ import annotations

from pathlib import Path

from ace_studio.records.errors import ErrorCode
from ace_studio.session.document import Document
from ace_studio.session.kept.trust import TrustedFile, TrustStore, files_to_trust
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.jobs import JobVerbs


class TrustVerbs:
    """Which files may run on this machine, by their contents."""

    def __init__(self, state: SessionState, store: TrustStore, jobs: JobVerbs) -> None:
        self._state = state
        self._store = store
        self._jobs = jobs

    @property
    def files(self) -> tuple[TrustedFile, ...]:
        """Everything trusted, oldest first."""
        return self._store.files

    def trust_file(self, *, keep: bool = True) -> None:
        """Let the shown files run as they are, then go on with the job that was refused for them, if there is one.

        These are the file that was inspected and the files that the engine asked trust for. Without ``keep`` they may
        run until the window closes.
        """
        with self._state.reporting():
            for path, sha256 in files_to_trust(self._state.document):
                self._store.trust(path, sha256, keep=keep)
            problems = self._state.document.problems
            others = tuple(problem for problem in problems if problem.code is not ErrorCode.UNTRUSTED)
            self._state.change(is_trusted=True, needs_trust=False, problems=others)
            self._jobs.retry_refused()

    def trust_folder(self) -> None:
        """Let everything in the folder of the shown file run, also what is changed or added later."""
        with self._state.reporting():
            self._store.trust_folder(Path(self._state.document.folder))
            self.trust_file(keep=False)

    def trusts_places_of(self, document: Document) -> bool:
        """Whether all files that the engine asked trust for lie in trusted folders."""
        places = [problem.where for problem in document.problems if problem.code is ErrorCode.UNTRUSTED]
        return bool(places) and all(self._store.covers(place) for place in places)

    def was_trusted(self, path: str) -> bool:
        """Whether another content of the file is trusted: it has changed since then."""
        return any(file.path == path for file in self._store.files)

    def revoke_trust(self, sha256: str = "") -> None:
        """Withdraw the trust in a content, or in the opened file, which then has to be trusted again before it runs."""
        with self._state.reporting():
            report = self._state.document.file
            self._store.revoke(sha256 or (report.sha256 if report is not None else ""))
            self.check_trust()

    def check_trust(self) -> None:
        """Ask for trust in the opened file again if it was withdrawn, perhaps by another window or the command line."""
        report = self._state.document.file
        if report is not None and report.trust == "code" and not self._store.is_trusted(report.sha256):
            self._state.change(is_trusted=False, needs_trust=True)
