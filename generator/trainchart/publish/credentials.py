"""Whose name and password go to a repository: read from what helm and docker keep. Pure.

docker's and helm's registry files have one format; helm keeps those of HTTP repositories in repositories.yaml.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.errors import PublishError
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, parse_mapping

_DOCKER_HUB = ("docker.io", "registry-1.docker.io", "index.docker.io")
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"


@dataclass(frozen=True)
class Credentials:
    """A name and a password or token; the password never shows in messages."""

    username: str
    password: str = field(repr=False)


def find_helper(text: str, host: str) -> tuple[str, str] | None:
    """Return the credential helper (the X of docker-credential-X) that a registry file names for `host`.

    With it comes what to ask it for: the address under which docker keeps a login.
    """
    config = _parse(text)
    address = _DOCKER_HUB_KEY if host in _DOCKER_HUB else host
    helpers = config.get("credHelpers")
    if isinstance(helpers, Mapping):
        for key in _keys(host):
            if key in helpers:
                return str(helpers[key]), address
    store = config.get("credsStore")
    return (str(store), address) if store else None


def find_registry_login(text: str, host: str) -> Credentials | None:
    """Return what a registry file of docker or helm holds for `host`. Raises PublishError where it is damaged."""
    found = _parse(text).get("auths")
    logins = found if isinstance(found, Mapping) else {}
    for login in map(logins.get, _keys(host)):
        if not isinstance(login, Mapping):
            continue
        if login.get("auth"):
            return _decode(str(login["auth"]), host)
        if login.get("username"):
            return Credentials(str(login["username"]), str(login.get("password", "")))
    return None


def parse_helper_answer(text: str) -> Credentials | None:
    """Return what a credential helper printed; None where it has nothing."""
    try:
        answer = parse_json(text)
        return Credentials(str(answer["Username"]), str(answer["Secret"])) if answer.get("Secret") else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def find_repository_login(text: str, url: str) -> Credentials | None:
    """Return what helm's repositories.yaml holds for the repository at `url`."""
    try:
        repositories = parse_mapping(text).get("repositories")
    except YamlError as error:
        raise PublishError(f"helm's repositories.yaml cannot be read: {error}", hint="see: helm repo list") from error
    for entry in repositories if isinstance(repositories, list) else ():
        if isinstance(entry, Mapping) and str(entry.get("url", "")).rstrip("/") == url and entry.get("username"):
            return Credentials(str(entry["username"]), str(entry.get("password", "")))
    return None


def _keys(host: str) -> tuple[str, ...]:
    hub = (_DOCKER_HUB_KEY, *_DOCKER_HUB) if host in _DOCKER_HUB else ()
    return (host, f"https://{host}", f"https://{host}/", f"https://{host}/v1/", f"https://{host}/v2/", *hub)


def _parse(text: str) -> Mapping[str, Any]:
    try:
        config = parse_json(text)
    except ValueError as error:
        raise PublishError(f"the registry login file is not JSON: {error}", hint="log in again") from error
    return config if isinstance(config, Mapping) else {}


def _decode(auth: str, host: str) -> Credentials:
    try:
        username, colon, password = base64.b64decode(auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise PublishError(f"the login for {host} is damaged", hint=f"helm registry login {host}") from error
    if not colon:
        raise PublishError(f"the login for {host} is damaged", hint=f"helm registry login {host}")
    return Credentials(username, password)
