"""Opens the repository that --to or --from names, and registries of images, with the logins of helm or docker."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainchart.host.credential_helper import ask_credential_helper
from trainchart.host.files import read_text
from trainchart.host.folder_store import FolderStore
from trainchart.publish.credentials import (
    Credentials,
    find_helper,
    find_registry_login,
    find_repository_login,
    parse_helper_answer,
)
from trainchart.publish.image_reference import ImageReference
from trainchart.publish.index_folder import IndexRepository
from trainchart.publish.io.chart_museum import ChartMuseumRepository
from trainchart.publish.io.http import HttpClient
from trainchart.publish.io.oci import OciRepository
from trainchart.publish.io.registry import Registry
from trainchart.publish.io.webdav import WebDavStore
from trainchart.publish.location import Kind, Location, parse_location
from trainchart.publish.repository import Repository

USERNAME = "TRAINCHART_USERNAME"
PASSWORD = "TRAINCHART_PASSWORD"


@dataclass(frozen=True)
class Address:
    """A repository as the command line names it."""

    text: str
    plain_http: bool = False

    @property
    def server(self) -> str:
        """Return scheme, host and port; empty for a folder. Raises PublishError for an unfit address."""
        return parse_location(self.text, plain_http=self.plain_http).base


def without_login(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment without the name and password in it; those that helm and docker keep are for one host."""
    return {name: value for name, value in environment.items() if name not in (USERNAME, PASSWORD)}


def versions_command(name: str, address: Address) -> str:
    """Return the command that lists the versions of a chart or pack at an address."""
    encryption = " --plain-http" if address.plain_http else ""
    return f"trainchart versions {name} --from {shlex.quote(address.text)}{encryption}"


@dataclass(frozen=True)
class ImageAccess:
    """How image registries are reached."""

    environment: Mapping[str, str]
    insecure_registries: tuple[str, ...] = ()
    """Hosts that are spoken to without encryption, beside those of this machine."""
    beside: Address | None = None
    """Where the chart goes: images of the same host are reached in the same way, with the same login."""


@contextmanager
def open_repository(address: Address, environment: Mapping[str, str]) -> Iterator[Repository]:
    """Give the repository at `address`; nothing is asked of it yet. Raises PublishError for an unfit address."""
    location = parse_location(address.text, plain_http=address.plain_http)
    if location.kind is Kind.folder:
        yield IndexRepository(FolderStore(location.url, Path(location.path)))
        return
    with HttpClient(location.base, _find_login(location, environment)) as client:
        if location.kind is Kind.oci:
            yield OciRepository(location, client)
        elif location.kind is Kind.chart_museum:
            yield ChartMuseumRepository(location, client)
        else:
            yield IndexRepository(WebDavStore(location, client))


@contextmanager
def open_image_registry(image: ImageReference, access: ImageAccess) -> Iterator[Registry]:
    """Give the registry of an image; nothing is asked of it yet.

    A name and password of the environment belong to the charts' repository, and go to no other host.
    """
    repository = parse_location(access.beside.text, plain_http=access.beside.plain_http) if access.beside else None
    is_beside = repository is not None and repository.kind is Kind.oci and repository.host in (image.host, image.base)
    is_plain = image.is_on_this_machine or image.host in access.insecure_registries
    if repository is not None and is_beside:
        base, login = repository.base, _find_login(repository, access.environment)
    else:
        base = f"{'http' if is_plain else 'https'}://{image.base}"
        login = _find_kept_login(image.host, access.environment)
    with HttpClient(base, login) as client:
        yield Registry(client)


def _find_login(location: Location, environment: Mapping[str, str]) -> Credentials | None:
    """Return whose login to use: the environment's, else helm's, else docker's, else podman's."""
    if environment.get(USERNAME):
        return Credentials(environment[USERNAME], environment.get(PASSWORD, ""))
    if location.kind is Kind.oci:
        return _find_kept_login(location.host, environment)
    kept = Path(environment.get("HELM_REPOSITORY_CONFIG") or _helm_folder(environment) / "repositories.yaml")
    url = location.url.removeprefix("chartmuseum+")
    return find_repository_login(read_text(kept), url) if kept.is_file() else None


def _find_kept_login(host: str, environment: Mapping[str, str]) -> Credentials | None:
    """Return the login that helm keeps for a registry, else docker, else podman."""
    helm = Path(environment.get("HELM_REGISTRY_CONFIG") or _helm_folder(environment) / "registry" / "config.json")
    docker = Path(environment.get("DOCKER_CONFIG") or _home(environment) / ".docker") / "config.json"
    run = environment.get("XDG_RUNTIME_DIR")
    podman = Path(run, "containers", "auth.json") if run else Path(f"/run/containers/{os.getuid()}/auth.json")
    for kept in (helm, docker, Path(environment.get("REGISTRY_AUTH_FILE") or podman)):
        found = _find_registry_login(read_text(kept), host) if kept.is_file() else None
        if found is not None:
            return found
    return None


def _helm_folder(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config") / "helm"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "~").expanduser()


def _find_registry_login(text: str, host: str) -> Credentials | None:
    helper = find_helper(text, host)
    found = parse_helper_answer(ask_credential_helper(*helper)) if helper else None
    return found or find_registry_login(text, host)
