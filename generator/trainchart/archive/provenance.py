"""Provenance of a chart archive as Helm has it: Chart.yaml and the archive's digest in one text, which PGP signs. Pure.

Format: https://helm.sh/docs/topics/provenance/
"""

from __future__ import annotations

import hashlib
import re

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.pack import ChartArchive
from trainchart.archive.read import parse_archive
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_mapping

_SEPARATOR = "\n...\n"
PROVENANCE_LIMIT = 1024 * 1024
"""Bytes of a .prov file: it holds Chart.yaml and a signature."""
_BEGIN = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\r?\n")
_CLEAR_TEXT = re.compile(
    r"(?:\S[^\n]*\n)*+\r?\n(?P<text>.*?)\r?\n-----BEGIN PGP SIGNATURE-----",
    re.DOTALL,
)


def build_statement(archive: ChartArchive) -> str:
    """Return the text that is to be signed."""
    chart = parse_archive(archive.data).files[CHART_FILE].decode("utf-8-sig")
    digest = f"sha256:{hashlib.sha256(archive.data).hexdigest()}"
    return dump_mapping(parse_mapping(chart)) + _SEPARATOR + dump_mapping({"files": {archive.filename: digest}})


def read_clear_text(provenance: bytes) -> str:
    """Return the text of a .prov file, empty where it has none. Who signed is not asked, nor what gpg would verify."""
    text = provenance.decode("utf-8", errors="replace")
    begin = _BEGIN.search(text)
    found = _CLEAR_TEXT.match(text, begin.end()) if begin is not None else None
    return re.sub(r"(?m)^- ", "", found["text"]) if found is not None else ""


def stated_digest(statement: str, filename: str) -> str:
    """Return the digest that a signed text states of an archive, empty where it states none."""
    parts = statement.split(_SEPARATOR)
    try:
        # Of more than two parts, Helm reads the second, and others the last.
        files = parse_mapping(parts[1]).get("files") if len(parts) == 2 else None
    except YamlError:
        return ""
    return str(files.get(filename, "")) if isinstance(files, dict) else ""
