"""The kinds of fixes that are proposed for a place."""

from torch import nn

from ace_studio.engine.fixes import FIX_ROWS, ProposedFix, Spot, proposed_fixes
from ace_studio.records.fixes import FixKind
from ace_studio.records.recipes.recipe import ControlKind
from tests.engine.fixes.branches import EARLY, source_of


def test_a_file_of_an_installed_package_is_not_patched(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    path = folder / "net.py"
    path.write_text(source_of(EARLY))
    assert list(proposed_fixes(Spot.of(str(path), 8, nn.Identity()))) == []


def test_a_place_that_does_not_exist_has_no_fixes(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(source_of(EARLY))
    for file, line in ((path, 99), (path, 0), (tmp_path / "no.py", 1)):
        assert list(proposed_fixes(Spot.of(str(file), line, nn.Identity()))) == []


def test_every_kind_of_fix_has_one_row():
    assert sorted(row.kind for row in FIX_ROWS) == sorted(FixKind)
    assert {kind.value for kind in ControlKind} <= {row.kind.value for row in FIX_ROWS}


def test_the_same_change_at_two_places_is_one_change():
    control = object()
    one, other = (
        ProposedFix(FixKind.DISABLE, "title", "net.py", line, control=control)  # type: ignore[arg-type]
        for line in (3, 7)
    )
    assert one.change == other.change
    refused = ProposedFix(FixKind.WHERE, "title", "net.py", 3, refusal="it raises")
    assert refused.change != ProposedFix(FixKind.WHERE, "title", "net.py", 7, refusal="it raises").change
