"""One build process: started, given orders, paused and ended by the job."""

import contextlib
import subprocess
from pathlib import Path
from typing import IO, cast

import msgspec
import psutil

from ace_studio.engine.fresh import fresh_python
from ace_studio.engine.pipeline.builders.messages import AnyAnswer, AnyOrder

_ANSWERS: msgspec.json.Decoder[AnyAnswer] = msgspec.json.Decoder(AnyAnswer)


class BuilderLostError(Exception):
    """The process ended without an answer; the message says how, as half a sentence."""


class BuilderProcess:
    """A child of this process that has the stored capture in ``folder``. `ask` blocks; one thread may use it.

    It ends when its input does, so it never outlives the job. It stays in the process group of the job, which whoever
    cancels hard ends as a whole.
    """

    def __init__(self, folder: Path, *, log: Path) -> None:
        command = fresh_python("ace_studio.engine.pipeline.builders.child", "serve", str(folder))
        with log.open("w", encoding="utf-8") as written:
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._child.pid

    def wait_until_ready(self) -> AnyAnswer:
        """The first answer: the capture was read, or why not."""
        return self._next_answer()

    def ask(self, order: AnyOrder) -> AnyAnswer:
        """Give an order and wait for its answer. Raises: BuilderLostError."""
        self.tell(order)
        return self._next_answer()

    def tell(self, order: AnyOrder) -> None:
        """Give an order that has no answer. Raises: BuilderLostError."""
        try:
            orders = cast(IO[bytes], self._child.stdin)
            orders.write(msgspec.json.encode(order) + b"\n")
            orders.flush()
        except (OSError, ValueError) as error:
            raise BuilderLostError(self._ending()) from error

    def _next_answer(self) -> AnyAnswer:
        try:
            return _ANSWERS.decode(cast(IO[bytes], self._child.stdout).readline())
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise BuilderLostError(self._ending()) from error

    def _ending(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._child.wait(timeout=5.0)
            return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
        return "it does not answer"

    def pause(self) -> None:
        """Suspend the process and the compilers that it started."""
        for process in self._family():
            with contextlib.suppress(psutil.Error):
                process.suspend()

    def resume(self) -> None:
        """Resume them."""
        for process in reversed(self._family()):
            with contextlib.suppress(psutil.Error):
                process.resume()

    def kill(self) -> None:
        """Kill the process and its children; a waiting `ask` raises."""
        for process in self._family():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._child.wait()

    def close(self) -> None:
        """Close the pipes; call it after `kill`, when no thread reads them."""
        for stream in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], stream).close()

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self._child.pid)
            return [own, *own.children(recursive=True)]
        return []
