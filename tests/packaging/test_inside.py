"""A pack whose SBOM, list of packages or files are not what is inside is told, whoever changed it."""

import base64
import hashlib
import json
import tarfile

import pytest

SITE = "lib/python3.11/site-packages"


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


@pytest.fixture
def pack(tmp_path):
    """An honest pack of one package."""
    root = tmp_path / "ace-engine-1-linux-x86_64-cpu"
    site = root / SITE
    code, metadata = b"x = 1\n", b"Metadata-Version: 2.1\nName: Some_Package\nVersion: 1.0\n\nVersion: 9\n"
    (site / "some").mkdir(parents=True)
    (site / "some" / "__init__.py").write_bytes(code)
    (site / "some" / "__pycache__").mkdir()
    (site / "some" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"compiled")
    info = site / "some_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_bytes(metadata)
    (info / "INSTALLER").write_text("pip")
    lines = [record_line("some/__init__.py", code), record_line(f"{info.name}/METADATA", metadata)]
    (info / "RECORD").write_text("\n".join([*lines, "../../bin/some,sha256=x,1", f"{info.name}/RECORD,,"]) + "\n")
    component = {"type": "library", "name": "some-package", "version": "1.0", "purl": "pkg:pypi/some-package@1.0"}
    others = [{"name": "Python", "version": "3.11"}, {"name": "zlib1g", "version": "1", "purl": "pkg:deb/debian/z@1"}]
    (root / "contents.cdx.json").write_text(json.dumps({"components": [component, *others]}))
    (root / "pack.json").write_text(json.dumps({"packages": {"some_package": "1.0"}}))
    return root


def packed(pack):
    archive = pack.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as made:
        made.add(pack, pack.name)
    return archive


def problems(scripts, pack):
    """The same of the folder and of the archive."""
    inside = scripts("inside")
    found = inside.problems_of(pack)
    assert inside.problems_of(packed(pack)) == found
    return found


def test_an_honest_pack_has_no_problems(scripts, pack):
    assert problems(scripts, pack) == []


def test_a_file_with_other_bytes_is_told(scripts, pack):
    (pack / SITE / "some" / "__init__.py").write_text("import os  # planted\n")
    assert problems(scripts, pack) == [f"{SITE}/some/__init__.py has other bytes than its package says"]


@pytest.mark.parametrize(
    "name", ["planted.pth", "sitecustomize.py", "some/planted.so", "some/__pycache__/planted.cpython-311.pyc"]
)
def test_a_file_that_belongs_to_no_package_is_told(scripts, pack, name):
    (pack / SITE / name).write_text("planted")
    assert problems(scripts, pack) == [f"{SITE}/{name} belongs to no package"]


def test_a_missing_file_is_told(scripts, pack):
    (pack / SITE / "some" / "__init__.py").unlink()
    assert f"{SITE}/some/__init__.py is missing" in problems(scripts, pack)


def test_a_package_that_the_sbom_does_not_name_is_told(scripts, pack):
    (pack / "contents.cdx.json").write_text(json.dumps({"components": []}))
    assert problems(scripts, pack) == ["the SBOM does not name some-package 1.0, which is inside"]


def test_another_version_and_a_package_that_is_not_there_are_told(scripts, pack):
    (pack / "pack.json").write_text(json.dumps({"packages": {"some_package": "2.0", "ghost": "1"}}))
    assert problems(scripts, pack) == [
        "pack.json names ghost 1, which is not inside",
        "pack.json names some-package 2.0, but version 1.0 is inside",
    ]


def test_a_pack_without_its_sbom_is_told(scripts, pack):
    (pack / "contents.cdx.json").unlink()
    assert problems(scripts, pack) == ["the pack has no contents.cdx.json"]
