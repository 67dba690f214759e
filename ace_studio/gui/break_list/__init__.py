"""Places where capture stops: as a list (`entries`), and what became of fixes for them (`fix_card`, `diff_view`)."""
