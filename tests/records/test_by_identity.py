"""Results are kept for the very same arguments only."""

from ace_studio.records.by_identity import kept_by_identity


def test_equal_records_that_are_not_the_same_are_computed_anew():
    calls = []

    @kept_by_identity
    def length(one):
        calls.append(one)
        return len(one)

    first, second = [1, 2], [1, 2]
    assert [length(first), length(second), length(first), length(second)] == [2] * 4
    assert len(calls) == 2


def test_the_oldest_of_five_results_is_forgotten():
    calls = []

    @kept_by_identity
    def seen(one):
        calls.append(one)

    records = [[at] for at in range(5)]
    for one in (*records, records[0]):
        seen(one)
    assert calls == [*records, records[0]]


def test_a_function_may_keep_more_results():
    calls = []
    seen = kept_by_identity(calls.append, count=6)
    records = [[at] for at in range(6)]
    for one in (*records, *records):
        seen(one)
    assert calls == records
