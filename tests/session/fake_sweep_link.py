"""Where a session's sweeps go in tests: what was asked is noted, and nothing runs."""

from ace_studio.records.sweeps import RowStatus, SweepOrder, SweepRow


class FakeSweepLink:
    def __init__(self) -> None:
        self.orders: list[SweepOrder] = []
        self.stops = 0

    def start(self, order: SweepOrder) -> None:
        self.orders.append(order)

    def stop(self) -> None:
        self.stops += 1


def sweep_row(job: int, ms: float, *, shape: str = "") -> SweepRow:
    """A row with a result, of one model on one machine."""
    axes = {"shape": shape} if shape else {"threads": job}
    return SweepRow(
        job=str(job), recipe="recipe.toml", axes=axes, status=RowStatus.DONE, host="box", target="eager",
        precision="fp32", latency_ms=ms, metric=0.9, size_bytes=1000, folder=f"jobs/{job}",
    )  # fmt: skip
