"""What every target does: lower a captured graph, run it, and report what the runtime really executes."""

import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import BoundPlan, CapturedModel, Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import Int8Style
from ace_studio.engine.targets.shared.int8_styles import STYLES
from ace_studio.engine.targets.shared.library_error import opening_problem
from ace_studio.engine.targets.shared.support import NATIVE, judge_ops
from ace_studio.engine.torch_private.sizes import sizes_left_as_captured
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from ace_studio.records.results import Improvement, OpSupport
from ace_studio.records.targets import TargetRow

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Availability:
    """Whether a target works here; if not, why. And the line that installs what it, or some of its precisions, lack."""

    ok: bool
    reason: str = ""
    install: str = ""
    version: str = ""


@dataclass(frozen=True)
class OpActual:
    """What a runtime says it does with one op of the captured graph."""

    op_id: str
    actual: str
    """A `Precision` word, or ``fused``, ``folded`` or ``unknown``."""
    device: str = "cpu"
    latency_ms: float | None = None
    reason: str = ""
    """What it was fused into, why it has a higher precision, ..."""
    fused_into: str = ""
    """Op whose kernel also computes this one."""


@dataclass
class LoweringJob:
    """Everything a target needs to build one candidate."""

    captured: CapturedModel
    plan: BoundPlan
    calibration: Callable[[], Sequence[Example]]
    """The calibration examples; called only if the plan needs them. Raises AceError(NO_DATA) if there are none."""
    threads: int
    device: torch.device
    folder: Path
    """Scratch folder of this candidate, which goes when what was built goes; exists."""
    reporter: Reporter = field(default_factory=Reporter)
    ranges: RangeChoice = field(default_factory=RangeChoice)
    """How activation ranges follow from the calibration examples."""
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """``x.0`` -> smallest, usual and largest size of a dynamic dimension; else the examples say."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What several targets of one job need and the first one makes, such as the fp32 ONNX model."""
    options: Mapping[str, str] = field(default_factory=dict)
    """One of `Target.options`, or nothing."""
    library_methods: frozenset[ImproveMethod] = frozenset()
    """Improvements that were asked for and that changed nothing in the graph: a target may do them itself."""
    improvements: list[Improvement] = field(default_factory=list)
    """What this target did about them."""

    def once(self, key: str, make: Callable[[], _Made]) -> _Made:
        """What is shared under a key; the first target that asks makes it."""
        if key not in self.shared:
            self.shared[key] = make()
        made: _Made = self.shared[key]
        return made


class Lowered(ABC):
    """A built candidate: callable like the module it came from."""

    runs_in_torch: ClassVar[bool] = True
    """Whether a call computes with torch, so that gradients must be switched off."""

    _call: Callable[..., Any]
    """What runs it; mostly a `FlatCall` around the runtime's function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arguments and results are those of forward, nested alike, as torch tensors."""
        return self._call(*args, **kwargs)

    def bare(self, example: Example) -> Callable[[], object] | None:
        """One call of the runtime alone, on inputs in its own form; None if it cannot be told apart."""
        del example
        return None

    def begin_again(self) -> None:  # noqa: B027 - most runtimes keep nothing
        """Put the buffers that calls change back to their first values."""

    def twin(self) -> Callable[..., Any] | None:
        """The graph that it was compiled from, in eager torch, where compiling the model once more takes minutes."""
        return None

    @abstractmethod
    def read_back(self) -> list[OpActual]:
        """What the runtime really does with every op of the captured graph, as the runtime reports it."""

    @abstractmethod
    def save(self, folder: Path) -> Path:
        """Write the artifact into ``folder`` and return its path. `Target.load` can run it in another process."""


class CompiledModule(nn.Module):
    """A drop-in for the original module: same arguments, same nesting of outputs, inference only."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__()
        self._lowered = lowered

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled model."""
        if not self._lowered.runs_in_torch:
            return self._lowered(*args, **kwargs)  # a small model takes less time than switching gradients off and on
        with torch.no_grad():
            return self._lowered(*args, **kwargs)


class Target(ABC):
    """A runtime that a captured graph is lowered to. Everything that is data about it stands in its row."""

    modules: ClassVar[tuple[str, ...]] = ()
    """What is imported to see whether the installed packages can be used beside this torch."""
    precisions: ClassVar[Mapping[Precision, str]] = {}
    """Precision -> why the target cannot do it, empty if it can; where that is the same on every machine."""

    def __init__(self, row: TargetRow) -> None:
        self.row = row
        self.name = row.name
        self.label = row.label

    def available(self) -> Availability:
        """Whether it can be used here: at least, whether the packages of its row are installed."""
        packages = self.row.packages
        if missing := self.missing():
            return Availability(ok=False, reason=missing, install=self.row.install)
        version = importlib.metadata.version(packages[0]) if packages else str(torch.__version__)
        problem = self.opening_problem()
        return Availability(
            ok=not problem, reason=problem, install=self.row.install if problem else "", version=version
        )

    def opening_problem(self) -> str:
        """Empty if what is installed can be used here, else why not; asked only where all packages are there."""
        return opening_problem(self.row.packages[0], self.modules) if self.modules else ""

    def missing(self) -> str:
        """All packages of its row that are not installed, in a sentence; empty if there are none."""
        missing = [package for package in self.row.packages if importlib.util.find_spec(package) is None]
        return f"not installed: {', '.join(missing)}" if missing else ""

    def run_problem(self) -> str:
        """Empty if what it builds can be run on this machine, else why not: then it is saved, and never run here."""
        return ""

    def precision_problem(self, precision: Precision) -> str:
        """Empty if the target can do this precision here, else why not, in one sentence."""
        return self.precisions[precision]

    def op_problem(self, op: str, precision: Precision) -> str:
        """Empty if the target can do this operator (``aten.conv2d.default``) at this precision, else why not."""
        return self.precision_problem(precision) or self.kernel_problem(op, precision)

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays at a float precision, at a precision that the target has. Here: none does."""
        del op, precision
        return ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """How it takes each op of the graph, found without building anything. Here: all as they are."""
        return judge_ops(captured, lambda _: NATIVE)

    def options(self, plan: BoundPlan, table: GraphTable) -> Sequence[Mapping[str, str]]:
        """Other ways to build this plan, each of which may be faster; a search builds them and keeps what is."""
        del plan, table
        return ()

    def needed_options(self, path: Path, tensors: Sequence[Tensor], expected: Sequence[Tensor]) -> dict[str, str]:
        """Options without which its runtime gives other results than expected for the artifact. By default none."""
        del path, tensors, expected
        return {}

    def device_problem(self, device: torch.device) -> str:
        """Empty if the target can run on this device here, else why not. Every target runs on the CPU by default."""
        return "" if device.type == "cpu" else f"{self.label} runs on the CPU only, and this job measures on {device}"

    def precision_problem_on(self, device: torch.device, precision: Precision) -> str:
        """Why a precision that the target has elsewhere cannot be had on this device. By default it can."""
        del device, precision
        return ""

    def int8_style(self, plan: Plan, ranges: RangeChoice) -> Int8Style:
        """What it rounds around 8-bit ops under a plan, for simulations."""
        del plan, ranges
        return STYLES[self.row.rounding]

    def lower(self, job: LoweringJob) -> Lowered:
        """Build the candidate.

        Raises: AceError(UNSUPPORTED or NOT_INSTALLED) with the op and the reason; anything that the runtime's library
            raises, which whoever asked puts into words (`pipeline.problems`).
        """
        self.require()
        for precision in sorted(job.plan.precisions):
            if problem := self.precision_problem(precision):
                raise AceError.of(
                    ErrorCode.UNSUPPORTED,
                    f"{self.label} cannot run ops at {precision}",
                    why=problem,
                    remedy="Choose another precision or another target.",
                    where=next(op_id for op_id, planned in job.plan.assigned.items() if planned is precision),
                )
        with sizes_left_as_captured(job.captured.program):
            return self.build(job)

    def require(self) -> None:
        """Raises: AceError(NOT_INSTALLED) with the reason and the remedy if it cannot be used here."""
        found = self.available()
        if not found.ok:
            raise AceError.of(
                ErrorCode.NOT_INSTALLED, f"{self.label} cannot be used here", why=found.reason, remedy=found.install
            )

    @abstractmethod
    def build(self, job: LoweringJob) -> Lowered:
        """What `lower` does once the target is known to be here and to have every precision of the plan."""

    @abstractmethod
    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open an artifact that `Lowered.save` wrote, in a process that has never seen the model.

        The result is called with the flat tensor inputs of the model, in order, and gives the flat tensor outputs.
        """
