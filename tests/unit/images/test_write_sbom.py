"""What an image says that it holds: written by a program of its own, inside the image."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from email.message import Message
from importlib import metadata
from pathlib import Path

import write_sbom

OS_RELEASE = 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n'
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u13
Depends: libgcc-s1,
 libcrypt1 (>= 1:4.4.10-10~)
Description: GNU C Library
 Version: of the description

Package: passwd
Status: install ok installed
Version: 1:4.13+dfsg1-1
Architecture: amd64

Package: gone
Status: deinstall ok config-files
Version: 1.0
Architecture: all
"""


class Installed(metadata.Distribution):
    """A package that is installed nowhere."""

    def __init__(self, name: str, version: str, licence: str = "") -> None:
        self._told = Message()
        self._told["Name"], self._told["Version"] = name, version
        if licence:
            self._told["License-Expression"] = licence

    @property
    def metadata(self) -> Message:  # type: ignore[override]
        return self._told

    def read_text(self, filename: str) -> None: ...

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_python_and_its_packages_have_package_urls() -> None:
    python, *packages = write_sbom.python_components(
        [Installed("ml_dtypes", "0.6.0", "Apache-2.0"), Installed("Local.Build", "1.0+cu12")]
    )
    assert python["purl"] == f"pkg:generic/python@{sys.version.split()[0]}"
    assert packages == [
        {
            "type": "library",
            "bom-ref": "pkg:pypi/ml-dtypes@0.6.0",
            "name": "ml-dtypes",
            "version": "0.6.0",
            "purl": "pkg:pypi/ml-dtypes@0.6.0",
            "licenses": [{"expression": "Apache-2.0"}],
        },
        {
            "type": "library",
            "bom-ref": "pkg:pypi/local-build@1.0%2Bcu12",
            "name": "local-build",
            "version": "1.0+cu12",
            "purl": "pkg:pypi/local-build@1.0%2Bcu12",
        },
    ]


def test_packages_of_debian_that_are_installed_are_listed() -> None:
    system, *packages = write_sbom.system_components(OS_RELEASE, STATUS)
    assert (system["type"], system["name"], system["version"]) == ("operating-system", "debian", "12")
    assert [package["purl"] for package in packages] == [
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u13?arch=amd64&distro=debian-12",
        "pkg:deb/debian/passwd@1:4.13%2Bdfsg1-1?arch=amd64&distro=debian-12",
    ]
    assert list(write_sbom.system_components("", "")) == [], "not every base image is made of Debian packages"


def test_the_same_packages_in_any_order_give_the_same_bytes() -> None:
    components = list(write_sbom.system_components(OS_RELEASE, STATUS))
    text = write_sbom.make_document(components)
    assert write_sbom.make_document([*reversed(components), components[0]]) == text
    assert write_sbom.make_document(components[:-1]) != text
    document = json.loads(text)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    assert "metadata" not in document, "which would hold the time of the build"


def test_the_program_lists_the_environment_that_it_runs_in(tmp_path: Path) -> None:
    subprocess.run([sys.executable, write_sbom.__file__, str(tmp_path / "sbom.json")], check=True)
    document = json.loads((tmp_path / "sbom.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    found = {component["purl"] for component in document["components"]}
    assert f"pkg:pypi/pytest@{metadata.version('pytest')}" in found
