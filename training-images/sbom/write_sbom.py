"""Write what an image holds as CycloneDX JSON: the Python that runs this, its packages, and Debian's.

Runs while an image is built, in that image: `python3 write_sbom.py FILE`. Standard library of Python 3.8 alone.
The same packages give the same bytes, whenever and wherever, so there is no time in it.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping
from urllib.parse import quote

Component = Dict[str, Any]
"""One entry of the document's components."""


def make_document(components: Iterable[Component]) -> str:
    """Return the document with `components`, each once, in the order of their package URLs."""
    ordered = {component["bom-ref"]: component for component in components}
    listed = [ordered[reference] for reference in sorted(ordered)]
    return _dump(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, _dump(listed))}",
            "version": 1,
            "components": listed,
        }
    )


def python_components(distributions: Iterable[metadata.Distribution]) -> Iterator[Component]:
    """Yield Python itself, which many base images compile from source, and its packages."""
    python = platform.python_version()
    yield {**_component("python", python, f"pkg:generic/python@{python}"), "type": "platform"}
    for distribution in distributions:
        details = distribution.metadata
        name = re.sub(r"[-_.]+", "-", details["Name"] or "").lower()
        if name:
            component = _component(name, distribution.version, f"pkg:pypi/{name}@{_quote(distribution.version)}")
            licences = [{"expression": each} for each in details.get_all("License-Expression") or ()]
            yield {**component, "licenses": licences} if licences else component


def system_components(os_release: str, dpkg_status: str) -> Iterator[Component]:
    """Yield the distribution and its packages from the texts of /etc/os-release and /var/lib/dpkg/status."""
    system = {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in os_release.splitlines())}
    name, version = system.get("ID", ""), system.get("VERSION_ID", "")
    if name:
        reference = f"pkg:generic/{name}@{_quote(version)}"
        yield {**_component(name, version, reference), "type": "operating-system"}
    for paragraph in dpkg_status.split("\n\n"):
        fields = dict(_fields(paragraph))
        if fields.get("Status", "").endswith(" installed"):
            of = f"arch={fields['Architecture']}&distro={name}-{version}"
            reference = f"pkg:deb/{name}/{fields['Package']}@{_quote(fields['Version'])}?{of}"
            yield _component(fields["Package"], fields["Version"], reference)


def main(arguments: List[str]) -> None:
    """Write the document of this image into the file that is named."""
    system = system_components(_read("/etc/os-release"), _read("/var/lib/dpkg/status"))
    components = [*python_components(metadata.distributions()), *system]
    Path(arguments[0]).write_text(make_document(components), encoding="utf-8")


def _component(name: str, version: str, reference: str) -> Component:
    return {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}


def _fields(paragraph: str) -> Iterator[List[str]]:
    """Yield the fields of a package that have one line; lines that go on begin with a space."""
    for line in paragraph.splitlines():
        if not line.startswith((" ", "\t")) and ": " in line:
            yield line.split(": ", 1)


def _quote(version: str) -> str:
    return quote(version, safe=":")


def _dump(document: "Mapping[str, Any] | List[Component]") -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _read(path: str) -> str:
    """Return a file of the system; nothing where there is none: not every base image is made of Debian packages."""
    file = Path(path)
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


if __name__ == "__main__":
    main(sys.argv[1:])
