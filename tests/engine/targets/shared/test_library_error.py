"""Of a runtime's exception, people hear what it says of their model."""

from ace_studio.engine.targets.shared.library_error import library_reason, opening_problem


def test_places_in_the_library_are_left_out():
    said = (
        "Exception from src/inference/src/cpp/core.cpp:105:\n"
        "Check 'false' failed at src/frontends/common/src/frontend.cpp:54:\n"
        "FrontEnd API failed with OpConversionFailure:\n"
        "Model wasn't fully converted.\n"
    )
    assert library_reason(RuntimeError(said)) == (
        "FrontEnd API failed with OpConversionFailure: Model wasn't fully converted."
    )


def test_of_ops_that_could_not_be_translated_each_has_its_reason():
    said = (
        "Exception from src/inference/src/cpp/core.cpp:105:\n"
        "FrontEnd API failed with OpConversionFailure:\n"
        "-- ReduceL2-20 with a message:\n"
        "Check '(a != b.end())' failed at src/frontends/onnx/frontend/src/op/reduce.cpp:134:\n"
        "While validating ONNX node '<Node(ReduceL2): node_abs_1>':\n"
        "Unsupported input type dynamic\n\n"
        "-- STFT-20 with a message:\n"
        "Shape of signal input must be static with the rank equal to 3.\n\n"
        "Summary:\n"
        "-- Conversion is failed for: ReduceL2-20, STFT-20\n"
    )
    assert library_reason(RuntimeError(said)) == (
        "ReduceL2-20: Unsupported input type dynamic; "
        "STFT-20: Shape of signal input must be static with the rank equal to 3"
    )


def test_a_message_of_places_only_gives_its_first_line_and_an_empty_one_the_type():
    assert library_reason(RuntimeError("Exception from a.cpp:1:")) == "Exception from a.cpp:1:"
    assert library_reason(KeyError()) == "KeyError"


def test_a_plain_message_is_kept_and_cut():
    assert library_reason(ValueError("x" * 1000)) == "x" * 300


def test_a_release_that_does_not_open_says_what_was_raised():
    assert not opening_problem("torch", ("torch", "json"))
    problem = opening_problem("torch", ("json", "no_such_part_of_torch"))
    assert problem.startswith("torch ") and problem.endswith("No module named 'no_such_part_of_torch'")
