"""An engine that answers every request with the events that a test names, and a result."""

from ace_studio.records.results import Baseline, Latency, Result, ResultStatus, RunStatus, TargetRun

LATENCY = Latency(p10=1.0, p50=2.0, p90=3.0, n=5)


def result(status=ResultStatus.OK, error=None):
    run = TargetRun(target="openvino", status=RunStatus.OK, precision="fp32", latency_ms=LATENCY, verified=True)
    return Result(
        status=status, fingerprint="f", environment={}, baseline=Baseline(latency_ms=LATENCY), runs=(run,), chosen=0,
        error=error,
    )  # fmt: skip


class FakeExecutor:
    """Answers every request with a script of events, and keeps the request.

    The script may be a dict by the kind of request, and there a list of scripts for requests in turn.
    """

    script: tuple | dict = ()
    requests: list = []  # noqa: RUF012 - shared on purpose: the command makes the instance

    def __init__(self, client=None):
        pass

    def run(self, request):
        FakeExecutor.requests.append(request)
        script = FakeExecutor.script
        events = script[type(request)] if isinstance(script, dict) else script
        yield from events.pop(0) if isinstance(events, list) else events

    def close(self):
        pass
