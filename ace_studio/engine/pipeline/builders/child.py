"""The build process: reads the stored capture once, then lowers the ordered plans one by one."""

import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
import torch

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.pipeline.builders import messages
from ace_studio.engine.pipeline.builders.stored import read_capture
from ace_studio.engine.pipeline.problems import build_problem
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import Lowered, LoweringJob
from ace_studio.records.errors import AceError

SETUP_NAME = "setup.json"


def serve(folder_name: str) -> int:
    """Serve until the orders end."""
    orders, answers = _private_streams()
    folder = Path(folder_name)
    setup = msgspec.json.decode((folder / SETUP_NAME).read_bytes(), type=messages.Setup)
    torch.set_num_threads(setup.threads)
    builder = _Builder(setup, *read_capture(folder))
    _say(answers, messages.Ready())
    order_of = msgspec.json.Decoder(messages.AnyOrder)
    for line in orders:
        with torch.no_grad():
            answer = builder.carry_out(order_of.decode(line))
        if answer is not None:
            _say(answers, answer)
    return 0


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the job. Output of libraries goes to the log, and no library can read an order."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return orders, answers


def _say(answers: IO[bytes], answer: messages.AnyAnswer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()


class _Builder:
    """The builds that this process holds."""

    def __init__(self, setup: messages.Setup, captured: CapturedModel, calibration: list[Example]) -> None:
        self._setup = setup
        self._captured = captured
        self._calibration = calibration
        self._shared: dict[str, object] = {}
        self._built: dict[int, Lowered] = {}

    def carry_out(self, order: messages.AnyOrder) -> messages.AnyAnswer | None:
        """Carry out an order; an error becomes the answer."""
        match order:
            case messages.ReleaseOrder():
                self._built.pop(order.number, None)
                return None
            case messages.BuildOrder():
                label = TARGETS[order.target].label
                return self._refused_or(lambda: self._build(order), label=label, precision=order.plan.plan.label)
            case messages.ReadBackOrder():
                ops = self._built[order.number].read_back
                return self._refused_or(
                    lambda: messages.ReadBack(ops=tuple(ops())), label="The runtime", precision="its plan"
                )

    def _refused_or(self, step: Callable[[], messages.AnyAnswer], *, label: str, precision: str) -> messages.AnyAnswer:
        try:
            return step()
        except AceError as error:
            return messages.Refused(problem=error.problem)
        except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
            traceback.print_exc()
            return messages.Refused(problem=build_problem(error, label=label, precision=precision))

    def _build(self, order: messages.BuildOrder) -> messages.Built:
        started = time.monotonic()
        target, folder = TARGETS[order.target], Path(order.folder)
        reporter = Reporter()
        job = LoweringJob(
            captured=self._captured,
            plan=order.plan,
            calibration=lambda: [example.copied() for example in self._calibration],
            threads=self._setup.threads,
            device=self._captured.device,
            folder=folder,
            reporter=reporter,
            ranges=self._setup.ranges,
            sizes=self._setup.sizes,
            shared=self._shared,
        )
        lowered = target.lower(job)
        own = folder / messages.ARTIFACT
        own.mkdir()
        path = lowered.save(own)
        self._built[order.number] = lowered
        return messages.Built(
            path=str(path),
            seconds=time.monotonic() - started,
            runs_in_torch=lowered.runs_in_torch,
            warnings=tuple(reporter.warnings),
            improvements=tuple(job.improvements),
        )
