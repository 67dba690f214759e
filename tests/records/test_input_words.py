from ace_studio.records.input_words import rows_of


def test_words_become_rows():
    rows = rows_of(["x=1x3x8x8", "x=2x3x8x8", "ids=1x16:int64"])
    assert [row["x"].shape for row in rows] == [(1, 3, 8, 8), (2, 3, 8, 8)]
    assert [row["ids"].dtype for row in rows] == ["int64", "int64"]


def test_words_say_where_their_values_come_from():
    (row,) = rows_of(["ids=1x16:int64:random 0..9", "flag=::value True", "mask=::none"])
    assert [row[name].values for name in ("ids", "flag", "mask")] == ["random 0..9", "value True", "none"]
