"""Pack a chart into a .tgz, its lock honoured: what is published is what was generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.archive.identity import compute_identity
from trainchart.archive.lock import LOCK_FILE, DriftKind, find_drift, name_locked_model, parse_lock
from trainchart.archive.pack import BuildInfo, ChartArchive, pack_chart
from trainchart.archive.provenance import build_statement
from trainchart.archive.read import parse_packed_chart
from trainchart.check.finding import CheckInput
from trainchart.check.rules.archive import check_no_secrets, find_unsearched
from trainchart.check.sources import VALUES_FILE
from trainchart.errors import ChecksFailed, Problem, ToolError
from trainchart.helm.io.choose import find_engine
from trainchart.host.clock import utc_today
from trainchart.host.files import read_bytes, write_file
from trainchart.host.git import read_commit
from trainchart.host.gpg import clear_sign

PASSPHRASE = "TRAINCHART_PASSPHRASE"
"""Variable with the passphrase of the key to sign with, where gpg's agent is not to ask for it."""
_SECRETS_RULE = "secrets-absent"
SOURCE_DATE_EPOCH = "SOURCE_DATE_EPOCH"
"""See https://reproducible-builds.org/specs/source-date-epoch/."""


@dataclass(frozen=True)
class PackagedChart:
    """A chart archive and where it was written."""

    path: Path
    archive: ChartArchive
    signature: Path | None = None


def package_chart(
    chart: Path,
    destination: Path,
    *,
    engine: str = "auto",
    allow_drift: bool = False,
    sign: str = "",
    environment: Mapping[str, str],
    origin: Path | None = None,
) -> PackagedChart:
    """Pack the chart at `chart` into the folder `destination`, with a .prov file where a key to `sign` with is named.

    Its commit is that of the folder `origin`, if one is given.
    Raises what build_archive and sign_archive raise.
    """
    archive = build_archive(chart, engine=engine, allow_drift=allow_drift, environment=environment, origin=origin)
    path = destination / archive.filename
    _require_same_identity(path, archive)
    provenance = sign_archive(archive, sign, environment) if sign else None
    write_file(path, archive.data)
    if provenance is None:
        return PackagedChart(path, archive)
    signature = path.with_name(f"{path.name}.prov")
    write_file(signature, provenance)
    return PackagedChart(path, archive, signature)


def sign_archive(archive: ChartArchive, key: str, environment: Mapping[str, str]) -> bytes:
    """Return the .prov file of an archive, signed by gpg with the key that `key` names. Raises ToolError."""
    return clear_sign(build_statement(archive), key, passphrase=environment.get(PASSPHRASE))


def build_archive(
    chart: Path, *, engine: str, allow_drift: bool, environment: Mapping[str, str], origin: Path | None = None
) -> ChartArchive:
    """Pack the chart at `chart` in memory; its commit is that of the folder `origin`, if one is given.

    Raises RenderError where it does not render with its own values, and ChecksFailed where files differ from
    trainchart.lock.yaml and `allow_drift` is off, or hold passwords or keys.
    """
    files = read_chart_files(chart)
    if not allow_drift:
        _require_no_drift(chart, files)
    require_no_secrets(files)
    archive = pack_chart(files, read_build_info(origin or chart, files, environment))
    find_engine(engine).render(chart, release=archive.name[:50].rstrip("-"))
    return archive


def _require_same_identity(path: Path, archive: ChartArchive) -> None:
    """Refuse to give a version that lies there already another content."""
    if not path.is_file():
        return
    there = compute_identity(parse_packed_chart(read_bytes(path)).files)
    if there != archive.identity:
        raise ToolError(
            f"{path} holds {archive.name} {archive.version} with different content",
            hint="a version always has the same content: raise `version` in the model spec, or move that archive",
            problems=(Problem(f"there sha256:{there}, here sha256:{archive.identity}"),),
        )


def _require_no_drift(chart: Path, files: Mapping[str, bytes]) -> None:
    # An archive has no lock: .helmignore keeps it out.
    if LOCK_FILE not in files:
        return
    lock = parse_lock(files[LOCK_FILE].decode(errors="replace"))
    drift = find_drift(lock, files)
    if drift:
        again = f"trainchart generate {name_locked_model(lock)}"
        if all(found.kind is DriftKind.missing for found in drift):
            hint = f"{again} writes what is missing; or pass --allow-drift"
        else:
            hint = f"change the model spec and run {again} --overwrite, or pass --allow-drift"
        raise ChecksFailed(
            f"{chart} has changed since it was generated",
            hint=hint,
            problems=tuple(Problem(f"{found.kind.value} since it was generated", where=found.path) for found in drift),
        )


def require_no_secrets(files: Mapping[str, bytes]) -> None:
    """Refuse a chart that holds passwords or keys, as the rule secrets-absent finds them; waivers of it hold.

    Also one whose values.yaml cannot be searched for them.
    """
    unsearched = find_unsearched(VALUES_FILE, files.get(VALUES_FILE, b""))
    found = (*check_no_secrets(CheckInput(files)), *unsearched)
    if not found:
        return
    # What is in order needs no waivers, and importing what reads them takes a while.
    from trainchart.archive.lock import WAIVER_FILE
    from trainchart.check.waivers import apply_waivers, parse_waivers

    named = tuple(replace(finding, rule=_SECRETS_RULE) for finding in found)
    left, _, _ = apply_waivers(named, parse_waivers(files)[0], utc_today())
    if left:
        raise ChecksFailed(
            "the chart holds passwords or keys, which everyone who pulls it can read",
            hint=f"if a file is intentional, add a waiver of {_SECRETS_RULE} with the reason to {WAIVER_FILE} of the "
            "chart's folder",
            problems=tuple(
                Problem(each.message, f"{each.path}:{each.line}" if each.line else each.path, each.hint)
                for each in left
            ),
        )


def read_build_info(chart: Path, files: Mapping[str, bytes], environment: Mapping[str, str]) -> BuildInfo:
    """Return what is to be said of where a chart comes from: the commit of `chart`, and the lock among its files."""
    lock = parse_lock(files[LOCK_FILE].decode(errors="replace")) if LOCK_FILE in files else None
    # The repository that an archive happens to lie in is not where its content came from.
    commit = read_commit(chart) if chart.is_dir() else None
    epoch = read_source_date(environment)
    if commit is None:
        return BuildInfo(created_epoch=epoch, lock=lock)
    return BuildInfo(
        lock=lock,
        git_commit=commit.commit,
        is_dirty=commit.is_dirty,
        created_epoch=commit.committed_epoch if epoch is None else epoch,
    )


def read_source_date(environment: Mapping[str, str]) -> int | None:
    """Return SOURCE_DATE_EPOCH, the time that reproducible builds claim; None where it is not set."""
    text = environment.get(SOURCE_DATE_EPOCH, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 11:
        raise ToolError(f"{SOURCE_DATE_EPOCH} is {text!r}, expected seconds since 1970", hint="for example 1767225600")
    return int(text)
