"""The start page: drop a model, open one, or try the example."""


def test_an_empty_window_offers_to_open_something_and_no_verb_that_needs_a_model(desk):
    actions = desk.window.actions_.by_id
    assert desk.window.start_page.isVisible()
    assert actions["open"].isEnabled()
    assert not actions["trace"].isEnabled()
    assert not actions["save"].isEnabled()
