"""Unsaved choices of a crashed window."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ace_studio.session.kept.autosave import Autosave, SavedChoices


def test_a_damaged_autosave_is_no_obstacle(tmp_path: Path) -> None:
    tmp_path.joinpath("1-x.json").write_text("{")
    gone = SavedChoices(
        pid=2**22 + 1, process_started_s=1.0, folder="/", recipe_path="", recipe_toml="format = 9", changed_s=1.0
    )
    tmp_path.joinpath("2-x.json").write_bytes(msgspec.json.encode(gone))
    autosave = Autosave(tmp_path)
    assert autosave.left_behind() == (gone,)
    assert gone.recipe() is None
    autosave.discard_left_behind()
    assert autosave.left_behind() == ()
