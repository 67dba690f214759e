"""The picture as a file: SVG and PDF for documents, PNG for everything else."""

import pytest

from ace_studio.records.errors import AceError


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_picture_can_be_saved(view, tmp_path, ending):
    view.canvas.open_everything()
    path = tmp_path / f"graph{ending}"
    path.symlink_to(tmp_path / "notes")
    view.export(path)
    assert not (tmp_path / "notes").exists(), "a link that lies there is replaced"
    start = path.read_bytes()[:400]
    assert {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}[ending] in start


def test_an_unknown_ending_and_a_missing_folder_are_explained(view, tmp_path):
    with pytest.raises(AceError, match=r"\.bmp"):
        view.export(tmp_path / "graph.bmp")
    with pytest.raises(AceError, match="could not be saved"):
        view.export(tmp_path / "missing" / "graph.png")
    view.show_graph(None)
    with pytest.raises(AceError, match="no graph"):
        view.export(tmp_path / "graph.png")
