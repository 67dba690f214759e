"""An unexpected exception of a runtime becomes a problem that names the target."""

from ace_studio.engine.pipeline.problems import build_problem
from ace_studio.records.errors import ErrorCode


def test_it_says_which_target_failed_at_which_precision_and_keeps_the_library_words():
    problem = build_problem(RuntimeError("no kernel for Foo"), label="OpenVINO", precision="int8-static")
    assert problem.code is ErrorCode.UNSUPPORTED
    assert problem.what == "OpenVINO could not build or run this model at int8-static"
    assert "no kernel for Foo" in problem.why
    assert problem.details == "RuntimeError: no kernel for Foo"
    assert problem.remedy


def test_it_keeps_where_in_the_library_it_was_raised():
    def kernel_of_foo():
        raise AssertionError("expected int, got None")

    try:
        kernel_of_foo()
    except AssertionError as error:
        problem = build_problem(error, label="Inductor", precision="int8-static")
    assert "in kernel_of_foo" in problem.details
    assert problem.details.endswith("AssertionError: expected int, got None")


def test_endless_details_are_cut():
    problem = build_problem(ValueError("x" * 100_000), label="eager", precision="fp32")
    assert len(problem.details) == 20_000
