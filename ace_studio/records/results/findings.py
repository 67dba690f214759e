"""What was found on the way to the runs: sensitivities, improvements, limits of the machine, the worst samples."""

import msgspec


class Warning(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is no error but that the user should know."""

    code: str
    what: str
    where: str = ""
    options: dict[str, str] = {}
    """Options of the runtime without which the artifact computes otherwise than measured."""

    def __hash__(self) -> int:
        return hash((self.code, self.what, self.where))


class OpSensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """The sensitivity of one op: fidelity of the outputs if only this op runs at a precision."""

    id: str
    precision: str
    sqnr_db: float


class Improvement(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one method of ``[improve]``, measured on calibration examples that it did not use."""

    method: str
    precision: str = ""
    """Default precision of the plan that it was tried for."""
    before_db: float | None = None
    """Fidelity of the simulated plan without it; None if the method could not be tried."""
    after_db: float | None = None
    kept: bool = False
    reason: str = ""
    """Why it was kept, rejected or not tried."""
    ops: int = 0
    """How many ops it changed."""
    seconds: float = 0.0


class ParetoPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run as a point of the trade-off; ``run`` indexes `Result.runs`."""

    run: int
    latency_ms: float
    size_bytes: int
    metric: float | None = None
    on_front: bool = False


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """The highest arithmetic rates and bandwidths of this machine with these threads, measured through torch."""

    gflops: dict[str, float]
    """Precision (fp32, bf16, int8-static, ...) -> 10^9 operations a second of a large matrix product or
    convolution, the best of some runs; precisions that torch cannot multiply in here are missing."""
    gbytes_per_s: float
    """10^9 bytes a second that a copy reads and writes, or a sum reads, from main memory: the best of some runs."""
    gbytes_per_s_at: dict[int, float]
    """Bytes of a working set -> 10^9 bytes a second: small ones stay in the caches."""
    spread: float
    """(best - median) / best over the runs, the worst of all ceilings: above 0.2 the machine was busy."""
    threads: int
    machine: str
    """Processor and torch release that they were measured with."""


class WorstSample(msgspec.Struct, frozen=True, kw_only=True):
    """One of the examples with the largest error of a run."""

    run: int
    """Index into `Result.runs`."""
    sample: int
    """Index among the examples of ``source``, counted from 0."""
    source: str
    """``evaluation``, ``calibration`` or ``tracing``."""
    error: float
    """The loss of the metric against the float model on this example (above 0 is worse), or without a metric the energy
    of the error over the energy of the outputs."""
    sqnr_db: float | None = None
    label: str = ""
