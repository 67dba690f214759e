"""Graph breaks: one per line, with the ops that they cost."""

from collections import Counter
from pathlib import Path

from torch import nn

from ace_studio.engine.capture.partial.breaks import breaks_of_problems, describe_breaks
from ace_studio.engine.capture.partial.left_eager import EagerOps
from ace_studio.engine.torch_private.dynamo import HeardBreak, failure_frames
from ace_studio.records.errors import ErrorCode, Problem


def problem(where: str, what: str = "it breaks") -> Problem:
    return Problem(code=ErrorCode.NOT_CAPTURED, what=what, remedy="do otherwise", where=where)


LINE = ("net.py", 4)
RAN = EagerOps(Counter({(LINE, "aten.add"): 6, (LINE, "aten.mul"): 3, (("net.py", 20), "aten.mm"): 1}), {})


def test_problems_with_a_line_become_breaks_and_each_line_counts_for_the_nearest() -> None:
    left = Counter({("net.py", 5): 9, ("net.py", 19): 2, ("other.py", 1): 4})
    problems = [problem("net.py:4, module blocks.1"), problem("net.py:20"), problem("[capture] time_limit_s")]
    first, second = breaks_of_problems(problems, RAN, left)
    assert (first.file, first.line, first.module, first.count) == ("net.py", 4, "blocks.1", 3)
    assert (first.ops_left_eager, second.ops_left_eager) == (13, 2)
    assert (second.reason, second.hint, second.count) == ("it breaks", "do otherwise", 1)


def test_two_problems_of_one_line_are_one_break() -> None:
    (one,) = breaks_of_problems([problem("net.py:4", "first"), problem("net.py:4", "second")], RAN, Counter())
    assert one.reason == "first"


def test_a_break_that_the_compiler_reported_says_its_line_and_its_code() -> None:
    try:
        raise RuntimeError("Data-dependent branching")  # the line of the break
    except RuntimeError as error:
        heard = HeardBreak(error, tuple(failure_frames(error)), skips_frame=False)
    (found,) = describe_breaks([heard, heard], nn.Linear(1, 1), RAN, Counter())
    assert Path(found.file) == Path(__file__)
    assert "the line of the break" in found.code
    assert "tensor's value" in found.reason
