"""Which callable makes the model where nobody has said so."""

from ace_studio.records.entry_choice import likely_entries
from ace_studio.records.messages import EntryPoint, EntryRole


def entry(name, role=EntryRole.NONE, **more):
    return EntryPoint(name=name, line=1, kind="function", signature="()", role=role, **more)


def test_a_usual_name_wins_over_a_role_and_a_role_over_any_function():
    listed = [entry("helper"), entry("trained", EntryRole.MODEL), entry("make_model")]
    assert likely_entries(listed) == ["make_model"]
    assert likely_entries(listed[:2]) == ["trained"]
    assert likely_entries(listed[:1]) == ["helper"]


def test_what_has_another_role_or_needs_arguments_makes_no_model():
    assert likely_entries([entry("data", EntryRole.DATA), entry("make", required_arguments=1)]) == []


def variable(name):
    return EntryPoint(name=name, line=2, kind="variable", signature="", role=EntryRole.MODEL)


def test_one_variable_that_holds_a_model_wins_over_its_class_and_several_do_not():
    net = EntryPoint(name="Net", line=1, kind="class", signature="()", is_module=True, role=EntryRole.MODEL)
    assert likely_entries([net, variable("model")]) == ["model"]
    assert likely_entries([net, variable("student"), variable("teacher")]) == ["Net"]
    assert likely_entries([variable("student"), variable("teacher")]) == ["student", "teacher"]
    assert likely_entries([entry("make_model"), variable("model")]) == ["make_model"]
