"""Of a runtime's exception, people hear what it says of their model."""

from ace_studio.engine.targets.library_error import library_reason


def test_places_in_the_library_are_left_out():
    said = (
        "Exception from src/inference/src/cpp/core.cpp:105:\n"
        "Check 'false' failed at src/frontends/common/src/frontend.cpp:54:\n"
        "FrontEnd API failed with OpConversionFailure:\n"
    )
    assert library_reason(RuntimeError(said)) == "FrontEnd API failed with OpConversionFailure:"


def test_a_message_of_places_only_gives_its_first_line_and_an_empty_one_the_type():
    assert library_reason(RuntimeError("Exception from a.cpp:1:")) == "Exception from a.cpp:1:"
    assert library_reason(KeyError()) == "KeyError"


def test_a_plain_message_is_kept_and_cut():
    assert library_reason(ValueError("x" * 1000)) == "x" * 300
