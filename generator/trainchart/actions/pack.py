"""Packs apart from the models that use them: start, check, publish, and fetch those that the project names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainchart.actions.package import require_no_secrets
from trainchart.actions.publish import utc_now
from trainchart.actions.support.family_charts import family_layers, find_families
from trainchart.actions.support.family_installs import find_install_problems
from trainchart.actions.support.family_tests import find_family_problems
from trainchart.actions.support.models import resolve_spec
from trainchart.actions.support.pack_files import PACK_LIMIT, PACK_LOCK_FILE, read_pack_files
from trainchart.actions.support.pack_templates import find_template_problems
from trainchart.actions.support.packs import (
    PackContent,
    cached_pack,
    read_lock,
    read_pack,
    read_packs,
    vendored_pack,
)
from trainchart.actions.support.project import PROJECT_FILE, find_project, require_in_project, write_new_in_project
from trainchart.actions.support.repository_access import Address, open_repository, versions_command, without_login
from trainchart.archive.lock import hash_tree
from trainchart.errors import PlanError, Problem, RepositoryNotFound, SpecError, ToolError, UsageError, VersionConflict
from trainchart.host.clock import utc_today
from trainchart.host.files import read_bytes, write_file
from trainchart.host.git_fetch import fetch_git_files
from trainchart.packs.admission import make_admission_policies
from trainchart.packs.archive import pack_archive, parse_pack_archive
from trainchart.packs.lock import LockedPack, dump_pack_lock
from trainchart.packs.pack import FAMILIES, PACK_FILE, Pack, parse_pack
from trainchart.packs.probe import make_probes
from trainchart.packs.source import PackSource
from trainchart.packs.templates import PackTemplates, base_path
from trainchart.packs.waivers import find_ended_waivers
from trainchart.publish.repository import Publication, prepare_upload, publish_upload
from trainchart.render.chart import FAMILY
from trainchart.render.layers import find_bases
from trainchart.render.templates import dump_blocks, read_texts
from trainchart.resources import read_family
from trainchart.scaffold.model_name import is_model_name
from trainchart.scaffold.pack_text import render_pack, render_project_file
from trainchart.spec.section import LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN

PACKS = Path("packs")
"""Folder of new packs."""


@dataclass(frozen=True)
class NewPack:
    """The files of a pack that was started."""

    name: str
    files: tuple[Path, ...]
    next: str
    """What is left to do for models to use it."""


def init_pack(name: str) -> NewPack:
    """Write packs/<name>/ into the project, and a project file that names it where there is none.

    Raises:
        UsageError: the name is not one that a pack can have.
        ToolError: a file already exists.
    """
    if not is_model_name(name):
        raise UsageError(
            f"{name!r} cannot be a pack's name: at most 40 lower-case letters, digits and dashes, starting with a "
            "letter",
            hint="for example platform or acme-ml",
        )
    project = find_project()
    place = PACKS / name
    files = {project.folder / place / path: text.encode() for path, text in render_pack(name).items()}
    file = project.folder / PROJECT_FILE
    if project.file is None:
        files[file] = render_project_file(place.as_posix()).encode()
        todo = f"set defaults in {project.folder / place / 'defaults.yaml'}, then: trainchart generate"
    else:
        todo = f"add {place.as_posix()} to extends in {file}"
    write_new_in_project(files, project.folder)
    return NewPack(name, tuple(files), todo)


def make_admission(folders: tuple[Path, ...], label: str) -> list[dict[str, Any]]:
    """Return what an administrator applies so that API servers hold the rules of packs, in namespaces with `label`.

    Without `folders`, the packs are those of the project; with them, those that they build on as well.

    Raises:
        UsageError: the label is not KEY=VALUE.
        SpecError: a pack is not valid, or has a waiver that has ended.
        ToolError: a pack is not there, or the project names none.
    """
    key, _, value = label.partition("=")
    if not (re.fullmatch(LABEL_KEY_PATTERN, key) and value and re.fullmatch(LABEL_VALUE_PATTERN, value)):
        raise UsageError(
            f"{label!r} is not a valid namespace label", hint="use LABEL=VALUE, for example trainchart=bounded"
        )
    packs = {pack.name: pack for chain in _read_chains(folders) for pack in chain}
    ended = _find_ended(packs.values())
    if ended:
        raise SpecError("packs are not valid", problems=ended)
    return make_admission_policies(packs.values(), (key, value), utc_today())


def _find_ended(packs: Iterable[Pack]) -> tuple[Problem, ...]:
    """Return the waivers that have ended: an owner must take notice."""
    return tuple(find_ended_waivers((waiver for pack in packs for waiver in pack.policy.waivers), utc_today()))


def check_packs(folders: tuple[Path, ...], *, engines: tuple[str, ...] = ("auto",)) -> tuple[Pack, ...]:
    """Return the packs in `folders`, or without any those of the project, checked for every strategy.

    Where a pack has templates, the first of Helm `engines` renders a chart of each strategy. Where it has families, or
    defaults for some, all of them render their tests: these must pass every check, and every Helm must render the same.

    Raises:
        SpecError: a pack, or what it builds on, is not valid; every problem with its line.
        ToolError: a pack is not there, or the project names none; or there is no Helm.
    """
    chains = _read_chains(folders)
    problems = dict.fromkeys(problem for chain in chains for problem in _find_problems(chain, engines))
    problems |= dict.fromkeys(_find_ended(chain[-1] for chain in chains))
    if problems:
        raise SpecError("packs are not valid", problems=tuple(problems))
    return tuple(chain[-1] for chain in chains)


def install_packs(folders: tuple[Path, ...], context: str, tell: Callable[[str], None]) -> None:
    """Install each test of the families of packs on a cluster, and remove it again: see `find_install_problems`.

    Raises:
        SpecError: a test cannot be installed, upgraded, tested or removed; what Helm and Kubernetes say of it.
        ClusterError: the cluster cannot be used.
    """
    problems = [each for chain in _read_chains(folders) for each in find_install_problems(chain, context, tell)]
    if problems:
        raise SpecError("charts of families cannot be used on this cluster", problems=tuple(problems))


def _read_chains(folders: tuple[Path, ...]) -> list[tuple[Pack, ...]]:
    """Return the packs in `folders`, or those of the project, each last behind those that are weaker."""
    if folders:
        return [read_pack(path, find_project()) for path in folders]
    packs = read_packs(find_project())
    if not packs:
        hint = "run: trainchart pack init NAME, or give the folder of a pack"
        raise ToolError(f"no {PROJECT_FILE} in this folder or above lists a pack", hint=hint)
    return [packs[: number + 1] for number in range(len(packs))]


def _find_problems(chain: tuple[Pack, ...], engines: tuple[str, ...]) -> list[Problem]:
    """Return what is wrong with the last pack of `chain`, over the others, for a model of any strategy."""
    found: list[Problem] = []
    for probe in make_probes(chain[-1].layers):
        try:
            resolve_spec(probe, chain)
        except (SpecError, PlanError) as error:
            found += [problem for problem in error.problems if problem.where.startswith(f"{chain[-1].place}/")]
    found = found or find_template_problems(make_probes(chain[-1].layers), chain, engines[0])
    return found + find_family_problems(chain, engines)


@dataclass(frozen=True)
class AcceptedBlock:
    """A block that a pack overrides, and whether its text below was written into the pack now."""

    template: Path
    block: str
    is_changed: bool


def accept_blocks(path: Path) -> tuple[AcceptedBlock, ...]:
    """Write into the pack in a folder what the blocks that its templates override say now, in the layers below it.

    Raises:
        SpecError: a template cannot be rendered.
        ToolError: the pack is not a folder, or cannot be written.
    """
    if not path.is_dir():
        raise ToolError(f"{path} is not a folder", hint="change the pack in its folder, and publish it again")
    chain = read_pack(path, find_project())
    layers = tuple(pack.templates for pack in chain if pack.templates is not None)
    accepted = []
    if chain[-1].templates is not None:
        accepted += _accept(path, read_family(FAMILY), layers)
    for name in chain[-1].family_templates:
        family = find_families(chain).get(name)
        if family is None:
            raise SpecError(f"there is no family {name} for {path / FAMILIES / name} to change")
        accepted += _accept(path / FAMILIES / name, {}, (family.templates, *family_layers(name, chain)))
    return tuple(accepted)


def _accept(folder: Path, family: Mapping[str, str], layers: tuple[PackTemplates, ...]) -> list[AcceptedBlock]:
    """Write the texts below the blocks that the last of `layers`, whose files are in `folder`, overrides."""
    before = dict(layers[-1].bases)
    bases = find_bases(family, layers)
    accepted = []
    for template, blocks in bases.items():
        known = read_texts(before.get(template, ""))
        accepted += [AcceptedBlock(folder / template, name, known.get(name) != text) for name, text in blocks.items()]
    files = {base_path(template): dump_blocks(template, blocks) for template, blocks in bases.items() if blocks}
    for base, text in files.items():
        write_file(folder / base, text.encode())
    for base in {base_path(template) for template in before} - {*files}:
        (folder / base).unlink()
    return accepted


@dataclass(frozen=True)
class FetchedPack:
    """A pack of a repository that the project uses."""

    locked: LockedPack
    path: Path
    """Where its archive lies now."""
    is_changed: bool
    """Whether the lock had no such pack before, or other content for it."""


def update_packs(*, is_locked: bool, plain_http: bool, environment: Mapping[str, str]) -> tuple[FetchedPack, ...]:
    """Download the packs of repositories that the project names, and lock their content.

    With `is_locked`, only what the lock names is accepted, and the lock stays as it is. Name and password in the
    environment are for the servers that the project names, and for none that only a downloaded pack names.

    Raises:
        ToolError: a repository has other content than the lock names, with `is_locked`.
        SpecError: a pack is not valid.
        PublishError: a pack is not in its repository, or that cannot be reached.
    """
    project = find_project()
    before = read_lock(project)
    found: dict[str, FetchedPack] = {}

    extends = project.file.extends if project.file else ()
    own = {_address(each, plain_http).server for each in extends if each.repository}

    def fetch(source: PackSource, is_own: bool) -> PackContent:
        if source.git:
            files = _fetch_from_git(source, is_own)
        else:
            address = _address(source, plain_http)
            # A downloaded pack may name any server, which must not get a password.
            is_known = is_own or address.server in own
            files = _download(source, address, environment if is_known else without_login(environment))
        pack = parse_pack(files, str(source))
        locked = LockedPack(source=str(source), name=pack.name, version=pack.version, sha256=hash_tree(files))
        is_changed = before.get(locked.source) != locked
        if is_changed and is_locked:
            raise ToolError(
                f"{source} differs from what {PACK_LOCK_FILE} names",
                hint="it was published again, or the lock is older than the project file; run: trainchart pack update",
            )
        path = cached_pack(locked.sha256)
        write_file(path, pack_archive(pack, files).data)
        found[locked.source] = FetchedPack(locked, path, is_changed)
        return PackContent(files, path)

    read_packs(project, fetch)
    if not is_locked and (found or before):
        lock = dump_pack_lock(pack.locked for pack in found.values())
        write_file(project.folder / PACK_LOCK_FILE, lock.encode())
    return tuple(found.values())


def vendor_packs(*, plain_http: bool, environment: Mapping[str, str]) -> tuple[FetchedPack, ...]:
    """Copy the locked packs of repositories into the project, where they are read without a network.

    Raises:
        ToolError, SpecError, PublishError: as `update_packs` does.
    """
    project = find_project()
    fetched = update_packs(is_locked=True, plain_http=plain_http, environment=environment)
    copies = []
    for pack in fetched:
        path = vendored_pack(project, pack.locked)
        require_in_project(path, project.folder)
        write_file(path, read_bytes(pack.path))
        copies.append(replace(pack, path=path))
    return tuple(copies)


def publish_pack(path: Path, to: Address, environment: Mapping[str, str]) -> Publication:
    """Publish the pack in a folder, as a library chart of its name and version.

    Raises:
        SpecError: the pack is not valid, or builds on a path, which users of a repository do not have.
        ChecksFailed: the pack holds passwords or keys.
        VersionConflict: the version is there with different content.
        PublishError: the repository cannot be used.
    """
    (pack,) = check_packs((path,))
    local = [source.path for source in pack.extends if not source.is_remote]
    if local:
        raise SpecError(
            f"{path} builds on the path {local[0]}, which is not in the repository",
            hint="publish that pack first, and name it by repository, name and version",
        )
    files = read_pack_files(path)
    if hash_tree(files) != pack.sha256:
        raise ToolError(f"{path} was changed while it was checked", hint="run the command again")
    require_no_secrets(files)
    archive = pack_archive(pack, files)
    try:
        with open_repository(to, environment) as repository:
            return publish_upload(repository, prepare_upload(archive.data, created=utc_now()))
    except VersionConflict as error:
        hint = f"published versions are immutable: raise version in {path / PACK_FILE}, and publish again"
        raise VersionConflict(error.message, hint=hint) from error


def _address(source: PackSource, plain_http: bool) -> Address:
    return Address(source.repository, plain_http)


def _fetch_from_git(source: PackSource, is_own: bool) -> dict[str, bytes]:
    """Return the files of a pack in Git. A downloaded pack must not decide where git uses its user's credentials."""
    if not is_own:
        raise SpecError(
            f"a downloaded pack extends {source}, but only the project and its own packs can use Git",
            hint="publish that pack in a chart repository, or list it in the project file",
        )
    return fetch_git_files(source.git, source.ref, source.folder, limit=PACK_LIMIT)


def _download(source: PackSource, address: Address, environment: Mapping[str, str]) -> dict[str, bytes]:
    with open_repository(address, environment) as repository:
        there = repository.fetch(source.name, source.version)
    if there is None:
        raise RepositoryNotFound(f"{source} does not exist", hint=versions_command(source.name, address))
    return parse_pack_archive(there.data)
