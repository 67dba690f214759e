"""The macOS disk image: the frozen program as ``ACE Studio.app``, signed and notarised where a certificate is there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from freeze import freeze
from steps import ROOT, BuildError, run, say, system_tag, version

ENTITLEMENTS = ROOT / "packaging" / "macos" / "entitlements.plist"
IDENTITY, PROFILE = "ACE_SIGNING_IDENTITY", "ACE_NOTARY_PROFILE"
"""Variables: name of the Developer ID certificate, and of the stored credentials of notarytool."""


def build_dmg(out: Path, work: Path) -> Path:
    """Build the image; returns it. Without a certificate it is not signed, and that is said.

    Raises: BuildError on another system, because PyInstaller freezes for the system that it runs on.
    """
    if sys.platform != "darwin":
        raise BuildError("a macOS program can be frozen on macOS only", "run this on macOS")
    app = freeze(work).with_name("ACE Studio.app")
    identity, profile = os.environ.get(IDENTITY, ""), os.environ.get(PROFILE, "")
    if identity:
        sign = ["codesign", "--force", "--timestamp", "--sign", identity]
        run([*sign, "--deep", "--options", "runtime", "--entitlements", ENTITLEMENTS, app])
    else:
        say(f"not signed: {IDENTITY} names no certificate")
    folder = work / "image"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(app, folder / app.name, symlinks=True)
    (folder / "Applications").symlink_to("/Applications")
    image = out / f"ace-studio-{version()}-{system_tag()}.dmg"
    run(["hdiutil", "create", "-volname", "ACE Studio", "-srcfolder", folder, "-format", "UDZO", "-ov", image])
    if identity and profile:
        run([*sign, image])
        run(["xcrun", "notarytool", "submit", image, "--keychain-profile", profile, "--wait"])
        run(["xcrun", "stapler", "staple", image])
    else:
        say(f"not notarised: {IDENTITY} or {PROFILE} is not set")
    return image
