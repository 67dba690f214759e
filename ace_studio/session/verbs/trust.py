"""The verbs about trust: let the opened files run, and withdraw that."""

from pathlib import Path

from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import FileReport
from ace_studio.session.kept.trust import FOLDER, TrustedFile, TrustStore, contents_of, files_to_trust
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.jobs import JobVerbs


class TrustVerbs:
    """Which files may run on this machine, by their contents."""

    def __init__(self, state: SessionState, store: TrustStore, jobs: JobVerbs) -> None:
        self._state = state
        self._store = store
        self._jobs = jobs
        self._seen: tuple[str, tuple[int, ...]] = ("", ())
        """A content of the opened file, and the stamp of the file when it had that."""

    @property
    def files(self) -> tuple[TrustedFile, ...]:
        """Everything trusted, oldest first."""
        return self._store.files

    @property
    def folders(self) -> tuple[str, ...]:
        """The trusted folders that hold the opened file."""
        report = self._state.document.file
        return self._store.folders_of(report.path) if report is not None else ()

    def trust_file(self, *, keep: bool = True) -> None:
        """Let the shown files run as they are, then go on with the job that was refused for them, if there is one.

        These are the file that was inspected and the files that the engine asked trust for. Without ``keep`` they may
        run until the window closes.
        """
        with self._state.reporting():
            for path, sha256 in files_to_trust(self._state.document):
                self._store.trust(path, sha256, keep=keep)
            self._go_on()

    def trust_folder(self) -> None:
        """Let everything in the folder of the shown file run, also what is changed or added later."""
        report = self._state.document.file
        if report is not None:
            with self._state.reporting():
                path = Path(report.path)
                self._store.trust_folder(path if path.is_dir() else path.parent)
                self.trust_covered()

    def trust_covered(self) -> None:
        """Let the shown files run and go on, if all of them lie in trusted folders."""
        if all(self._store.trust_covered(*each) for each in files_to_trust(self._state.document)):
            self._go_on()

    def _go_on(self) -> None:
        problems = self._state.document.problems
        others = tuple(problem for problem in problems if problem.code is not ErrorCode.UNTRUSTED)
        self._state.change(is_trusted=True, needs_trust=False, problems=others)
        self._jobs.retry_refused()

    def inspected(self, report: FileReport) -> bool:
        """Remember which content the opened file has. Returns: whether that may run."""
        self._seen = report.sha256, _stamp(report.path)
        known = any(file.path == report.path for file in self._store.files)
        covered = [self._store.trust_covered(*each) for each in contents_of(report)]
        may_run = report.trust != "code" or all(covered)
        self._state.change(has_changed_since_trust=known and not may_run)
        return may_run

    def revoke_trust(self, sha256: str = "") -> None:
        """Withdraw the trust in a content, or in the opened file with what it imports and in the folders it lies in.

        It has to be trusted again before it runs.
        """
        with self._state.reporting():
            report = self._state.document.file
            folders = () if sha256 else self.folders
            own = [content for _, content in contents_of(report)] if report is not None else []
            for each in (*([sha256] if sha256 else own), *(FOLDER + one for one in folders)):
                self._store.revoke(each)
            self.check_trust()

    def check_trust(self) -> None:
        """Ask for trust again if it was withdrawn, perhaps by another program, or if the opened file was edited."""
        report = self._state.document.file
        if report is None or report.trust != "code":
            return
        if not all(self._store.is_trusted(sha256) for _, sha256 in contents_of(report)):
            self._state.change(is_trusted=False, needs_trust=True)
        if report.sha256 == self._seen[0] and self._seen[1] != _stamp(report.path):
            self._jobs.inspect_source()


def _stamp(path: str) -> tuple[int, ...]:
    """What changes when a file is written; empty if it is gone."""
    try:
        stat = Path(path).stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size
