"""The SSH server of the tests in a process of its own: it shares no lock of Python with a window, and can stand still.

``python -m tests.jobs.hosts.ssh_process FOLDER`` prints the command for ``ACE_STUDIO_SSH``, and ends with its stdin.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.jobs.hosts.ssh_host import ssh_host

ROOT = Path(__file__).parents[3]


@dataclass
class SshProcess:
    """The running server."""

    home: Path
    command: str
    process: subprocess.Popen[str]

    def cut(self) -> None:
        """End all connections, as a network does."""
        assert self.process.stdin
        self.process.stdin.write("cut\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Answer nothing and read nothing, as over a network that hangs."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def ssh_process(folder: Path) -> Iterator[SshProcess]:
    """Run a server whose commands see ``folder/home`` as their home."""
    command = [sys.executable, "-m", "tests.jobs.hosts.ssh_process", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        assert process.stdout and process.stdin
        made = SshProcess(folder / "home", process.stdout.readline().strip(), process)
        try:
            yield made
        finally:
            made.go_on()
            process.stdin.close()


def main(folder: str) -> None:
    """Serve until stdin ends."""
    with ssh_host(Path(folder)) as host:
        print(host.command, flush=True)
        for _ in sys.stdin:
            host.cut()


if __name__ == "__main__":
    main(sys.argv[1])
