"""The licences of ACE Studio, of the packages that it runs on, and of the data that it ships."""

from __future__ import annotations

import re
import tomllib

from ace_studio.gui.dialogs.licences import NOT_SHIPPED, OWN, licences

KNOWN = r"MIT|BSD|Apache|LGPL|MPL|ISC|PSF|HPND|Zlib"


def test_every_package_that_is_needed_at_run_time_has_a_licence_that_allows_it():
    found = licences()
    assert found[0].package.name == OWN and "Apache" in found[0].name
    assert [each.title for each in found if not re.search(KNOWN, each.name)] == []
    only_gpl = [each.title for each in found if "GPL" in each.name and not re.search("LGPL", each.name)]
    assert only_gpl == []


def test_every_package_that_the_project_names_is_listed_if_it_is_installed(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *(line for name in extras if name not in NOT_SHIPPED for line in extras[name])]
    names = {re.match(r"[\w.-]+", line)[0].casefold() for line in named} - {OWN, "executorch"}
    listed = {re.sub(r"[-_.]+", "-", each.package.name.casefold()) for each in licences()}
    assert names - listed == set()


def test_a_text_is_shown_for_every_package_or_where_to_find_it():
    assert [each.title for each in licences() if len(each.text) < 60] == []
