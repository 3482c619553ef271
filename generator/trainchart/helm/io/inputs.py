"""What must hold before any Helm engine is asked: a chart is there, the release has a legal name; and what it is asked.

Checked here once, so that both engines refuse the same input with the same words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainchart.archive.lock import LOCK_FILE, incomplete_chart, parse_lock
from trainchart.archive.read import parse_archive
from trainchart.archive.subcharts import Unpacker
from trainchart.errors import Problem, RenderError, ToolError, TrainchartError, UsageError
from trainchart.helm.asked import SCHEMA_FILE, Asked, read_schemas, split_set
from trainchart.helm.rendering import ValueOverrides
from trainchart.host.files import read_bytes, read_text, read_tree, refuse_pipe
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, YamlTooLarge, find_duplicate_keys, parse_documents, parse_mapping

RELEASE_NAME_LIMIT = 53
"""Helm's own limit: maxReleaseNameLen."""
DEFAULT_KUBE_VERSION = "1.36.0"
"""What .Capabilities.KubeVersion says where no version is asked for; the SDK has it built in."""
RENDER_SECONDS = 120.0
"""The time that Helm has for one rendering or lint; the charts of this project take a tenth of a second."""
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
_PARTS = "core|applicator|validation|meta-data|content"
_DIALECT = re.compile(
    r"https?://json-schema\.org/(?:schema|draft-0[467]/schema|draft/20(?:19-09|20-12)/schema"
    rf"|draft/2019-09/meta/(?:{_PARTS}|format)|draft/2020-12/meta/(?:{_PARTS}|unevaluated|format-annotation))"
)
"""What every reader of schemas has built in."""
_SCHEMA_PATH = re.compile(rf"(?:charts/[^/]+/)*{re.escape(SCHEMA_FILE)}")
_PACKED_PATH = re.compile(r"(?:charts/[^/]+/)*charts/[^/._][^/]*\.tgz")
"""The schemas and packed charts that Helm loads; other files of such names are data."""
_SECOND_VALUE = "did not find expected <document start>"
"""The message of libyaml about what stands behind the end of a document, as between two objects of JSON."""
_BOM = b"\xef\xbb\xbf"
"""Helm drops it from every file, archives included."""
_NESTED_LIMIT = 5
"""Archives within each other that are looked into."""
_LEVELS = 4
"""Folders above this one in which a chart is looked for, to name it in a hint."""
_GZIP_MAGIC = b"\x1f\x8b"


def require_chart(chart: Path) -> None:
    """Raise ToolError unless `chart` is a folder with a Chart.yaml or a gzip file."""
    try:
        if chart.is_dir():
            refuse_pipe(chart / "Chart.yaml")
            if not (chart / "Chart.yaml").is_file():
                if (chart / LOCK_FILE).is_file():
                    raise incomplete_chart(str(chart), ["Chart.yaml"], parse_lock(read_text(chart / LOCK_FILE)))
                raise ToolError(
                    f"{chart} is not a chart: it has no Chart.yaml", hint="restore it, or give the chart's own folder"
                )
            return
        refuse_pipe(chart)
        with chart.open("rb") as stream:
            magic = stream.read(len(_GZIP_MAGIC))
    except FileNotFoundError as error:
        near = find_near_chart(chart)
        make = "package charts/NAME" if chart.suffix == ".tgz" else "generate NAME"
        hint = f"did you mean {near}?" if near else f"check the path, or create it with trainchart {make}"
        raise ToolError(f"there is no chart at {chart}", hint=hint) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"cannot read chart {chart}: {reason}") from error
    if magic != _GZIP_MAGIC:
        raise ToolError(f"{chart} is not a chart: expected a chart folder or a .tgz archive")


def read_kube_version(chart: Path) -> str:
    """Return the Kubernetes versions that a chart's Chart.yaml asks for; "" where it says none, or cannot be read."""
    try:
        files = (
            {"Chart.yaml": read_bytes(chart / "Chart.yaml")}
            if chart.is_dir()
            else parse_archive(read_bytes(chart)).files
        )
        return str(parse_mapping(files["Chart.yaml"].decode("utf-8-sig")).get("kubeVersion") or "")
    except (TrainchartError, YamlError, KeyError, ValueError):
        return ""


def find_near_chart(chart: Path) -> Path | None:
    """Return the chart that the path may mean: by a model's name, seen from the project's folder, or misspelt."""
    above = [Path(*[".."] * levels) for levels in range(_LEVELS)]
    places = [place / folder / chart for place in above for folder in ("charts", "")]
    exact = [] if chart.is_absolute() else [each for each in places if (each / "Chart.yaml").is_file()]
    beside = {path.parent.name: path.parent for path in chart.parent.glob("*/Chart.yaml")}
    alike = [beside[name] for name in difflib.get_close_matches(chart.name, beside, n=1)]
    return next(iter([*exact, *alike]), None)


def require_release_name(release: str) -> None:
    """Raise UsageError unless Helm would accept `release` as the name of a release."""
    if len(release) > RELEASE_NAME_LIMIT or not _RELEASE_NAME.fullmatch(release):
        raise UsageError(
            f"{release!r} is not a release name",
            hint=f"use at most {RELEASE_NAME_LIMIT} lower-case letters, digits, dashes and dots, "
            "beginning and ending with a letter or digit",
        )


def require_whole_values(overrides: ValueOverrides) -> None:
    """Refuse values of which Helm would leave out a part.

    Raises:
        UsageError: a set option names no key, or gives no value.
        RenderError: a file is no mapping, is too large, or holds several documents or a key twice.
    """
    for option, expressions in (("--set", overrides.sets), ("--set-string", overrides.set_strings)):
        for expression in expressions:
            _require_keys(option, expression)
    for name, text in overrides.files:
        try:
            documents = parse_documents(text, drop_empty=False)
        except YamlTooLarge as error:
            raise RenderError(f"{name} is too large: {error.message}", hint="give fewer values") from error
        except YamlError as error:
            if error.message == _SECOND_VALUE:
                raise RenderError(
                    f"{name} holds more than one document: Helm would leave out the document that starts in line "
                    f"{error.line}",
                    hint="merge them into one document, or pass each as its own file with -f",
                ) from error
            # Helm may read it, though, or the part of it that comes before what cannot be read.
            problem = Problem(error.message, f"{name}:{error.line}" if error.line else name)
            raise RenderError(f"cannot read the values in {name}", problems=(problem,)) from error
        if any(document is not None for document in documents[1:]):
            raise RenderError(
                f"{name} holds {len(documents)} YAML documents",
                hint="helm 3 would read only the first, helm 4 all of them: merge them into one document, or pass each "
                "as its own file with -f",
            )
        if documents and documents[0] is not None and not isinstance(documents[0], dict):
            kind = "a list" if isinstance(documents[0], list) else "a single value"
            raise RenderError(f"{name} holds {kind}, expected keys with their values", hint="write KEY: VALUE")
        for twice in find_duplicate_keys(text):
            raise RenderError(
                f"{name} has the key {twice.key} twice in one mapping, the second time in line {twice.line}",
                hint="Helm would use only the last one: remove the others",
            )


def _require_keys(option: str, expression: str) -> None:
    """Raise UsageError for a set option that gives no value at all, or has an empty key, which Helm leaves out."""
    parts = split_set(expression)
    for part in parts:
        key, sign, _ = part.partition("=")
        if not sign and len(parts) == 1:
            raise UsageError(f"cannot read {option} {expression!r}: it gives no value", hint="write KEY=VALUE")
        if sign and "" in re.split(r"(?<!\\)\.", key.strip()):
            raise UsageError(f"cannot read {option} {expression!r}: it has an empty key", hint="write KEY=VALUE")


def endless_chart(chart: Path) -> RenderError:
    """Return the error about templates that Helm is still running after RENDER_SECONDS."""
    return RenderError(
        f"Helm did not finish the templates of chart {chart_label(chart)} within {RENDER_SECONDS:g} seconds",
        hint="look for a range over a very large number, or a template that includes itself",
    )


def require_own_schemas(chart: Path) -> None:
    """Raise RenderError for a schema that leads to another one elsewhere: Helm would fetch it, or read it here.

    Also for whatever may hide such a schema: Helm reads more than this module can.
    """
    found = [
        Problem(f"{key} leads to {_shorten(address)}", path)
        for path, content in _find_schemas(chart)
        for key, address in _find_remote(path, content)
    ]
    if found:
        raise RenderError(
            f"the schema of {chart_label(chart)} is incomplete: Helm would fetch parts of it from elsewhere",
            hint="copy the content of that address into $defs of the schema, and refer to it by #/$defs/NAME",
            problems=tuple(found),
        )


def _find_schemas(chart: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the schemas of a chart and of those below it, packed ones too."""
    try:
        if not chart.is_dir():
            files = parse_archive(read_bytes(chart)).files
        else:
            # Helm follows links, and so does this.
            files = read_tree(chart) if (chart / "charts").is_dir() else {}
            if (chart / SCHEMA_FILE).is_file():
                files[SCHEMA_FILE] = read_bytes(chart / SCHEMA_FILE)
    except ToolError as error:
        raise _unknown("", error.message, error.hint) from error
    yield from _find_packed_schemas("", files, _NESTED_LIMIT, Unpacker())


def _find_packed_schemas(
    above: str, files: Mapping[str, bytes], depth: int, unpacker: Unpacker
) -> Iterator[tuple[str, bytes]]:
    for path, content in files.items():
        if _SCHEMA_PATH.fullmatch(path):
            yield above + path, content
        elif _PACKED_PATH.fullmatch(path):
            if not depth:
                raise _unknown(above + path, f"more than {_NESTED_LIMIT} charts are nested in each other")
            try:
                packed = unpacker.unpack(content)
            except ToolError as error:
                raise _unknown(above + path, error.message, error.hint) from error
            yield from _find_packed_schemas(f"{above}{path}/", packed, depth - 1, unpacker)


def _unknown(path: str, reason: str, hint: str = "") -> RenderError:
    return RenderError(
        "the chart cannot be checked for schemas that Helm would fetch from elsewhere",
        hint="unpack packed charts in charts/ with tar, and correct or remove what is named",
        problems=(Problem(reason, path, hint),),
    )


def _find_remote(path: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the references of a schema that lead out of it, each with its keyword.

    Only the name of the whole schema counts as its own: what stands deeper may be a mere value, which names nothing.
    """
    try:
        # As Helm reads it: without BOM, numbers of any length, and bytes that are no text replaced.
        document = parse_json(content.removeprefix(_BOM).decode(errors="replace"), keep_numbers=True)
    except ValueError as error:
        raise _unknown(path, f"it is not valid JSON: {error}") from error
    own = _own_address(document) if isinstance(document, dict) else ""
    pending = [document]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for key, address in part.items():
                if key in _REFERENCES and isinstance(address, str) and _leads_out(address, own):
                    yield key, address
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _own_address(schema: Mapping[str, object]) -> str:
    """Return the name by which a schema may refer to itself; "" where some reader would not take it for one."""
    address = schema.get("$id")
    # Drafts up to 7 pass over what stands beside a $ref, and draft 4 has no $id.
    if not isinstance(address, str) or "$ref" in schema or "draft-04" in str(schema.get("$schema")):
        return ""
    name = address.removesuffix("#")
    return name if re.fullmatch(r"https?://[^/?#\s]+/[^?#\s]*", name) else ""


def _leads_out(address: str, own: str) -> bool:
    resource = address.partition("#")[0]
    return bool(resource) and resource != own and not _DIALECT.fullmatch(resource)


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def chart_label(chart: Path) -> str:
    """Return the short name of `chart` for messages."""
    return chart.name or str(chart.resolve().name)


def describe_request(chart: Path, overrides: ValueOverrides) -> Asked:
    """Return what messages about refused values need to know; of a chart that cannot be read, nothing."""
    try:
        files = read_tree(chart) if chart.is_dir() else parse_archive(read_bytes(chart)).files
        name = str(parse_mapping(files["Chart.yaml"].decode()).get("name", ""))
        return Asked(read_schemas(files, name), name, overrides)
    except (TrainchartError, YamlError, KeyError, ValueError):
        return Asked(overrides=overrides)
