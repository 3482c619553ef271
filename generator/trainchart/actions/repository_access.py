"""Opens the repository that --to or --from names, logged in as the user is with helm or docker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainchart.host.credential_helper import ask_credential_helper
from trainchart.host.files import read_text
from trainchart.host.folder_store import FolderStore
from trainchart.publish.chart_museum import ChartMuseumRepository
from trainchart.publish.credentials import (
    Credentials,
    find_helper,
    find_registry_login,
    find_repository_login,
    parse_helper_answer,
)
from trainchart.publish.http import HttpClient
from trainchart.publish.image import ImageRepository, locate_images
from trainchart.publish.index_folder import IndexRepository
from trainchart.publish.location import Kind, Location, parse_location
from trainchart.publish.oci import OciRepository
from trainchart.publish.repository import Repository
from trainchart.publish.webdav import WebDavStore

USERNAME = "TRAINCHART_USERNAME"
PASSWORD = "TRAINCHART_PASSWORD"


@dataclass(frozen=True)
class Address:
    """A repository as the command line names it."""

    text: str
    plain_http: bool = False


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
def open_images(repository: str, environment: Mapping[str, str], *, plain_http: bool) -> Iterator[ImageRepository]:
    """Give the images called `repository`; nothing is asked of their registry yet. Raises PublishError."""
    location = locate_images(repository, plain_http=plain_http)
    with HttpClient(location.base, _find_login(location, environment)) as client:
        yield ImageRepository(location, client)


def _find_login(location: Location, environment: Mapping[str, str]) -> Credentials | None:
    """Return whose login to use: the environment's, else helm's, else docker's, else podman's."""
    if environment.get(USERNAME):
        return Credentials(environment[USERNAME], environment.get(PASSWORD, ""))
    home = Path(environment.get("HOME") or "~").expanduser()
    helm = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "helm"
    if location.kind is not Kind.oci:
        kept = Path(environment.get("HELM_REPOSITORY_CONFIG") or helm / "repositories.yaml")
        url = location.url.removeprefix("chartmuseum+")
        return find_repository_login(read_text(kept), url) if kept.is_file() else None
    docker = Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    run = environment.get("XDG_RUNTIME_DIR")
    podman = Path(run, "containers", "auth.json") if run else Path(f"/run/containers/{os.getuid()}/auth.json")
    of_helm = Path(environment.get("HELM_REGISTRY_CONFIG") or helm / "registry" / "config.json")
    for kept in (of_helm, docker, Path(environment.get("REGISTRY_AUTH_FILE") or podman)):
        found = _find_registry_login(read_text(kept), location.host) if kept.is_file() else None
        if found is not None:
            return found
    return None


def _find_registry_login(text: str, host: str) -> Credentials | None:
    helper = find_helper(text, host)
    found = parse_helper_answer(ask_credential_helper(helper, host)) if helper else None
    return found or find_registry_login(text, host)
