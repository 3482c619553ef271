"""Logins that helm and docker keep."""

from __future__ import annotations

import json

import pytest

from trainchart.errors import PublishError
from trainchart.publish.credentials import (
    Credentials,
    find_helper,
    find_registry_login,
    find_repository_login,
    parse_helper_answer,
)

ADA = "YWRhOnNlOmNyZXQ="  # ada:se:cret


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("registry.example.com", "registry.example.com"),
        ("https://registry.example.com", "registry.example.com"),
        ("https://registry.example.com/v2/", "registry.example.com"),
        ("https://index.docker.io/v1/", "registry-1.docker.io"),
        ("127.0.0.1:5000", "127.0.0.1:5000"),
    ],
)
def test_a_login_is_found_by_its_host(key: str, host: str) -> None:
    text = json.dumps({"auths": {key: {"auth": ADA}, "other.example.com": {"auth": "eDp5"}, "nobody.example.com": "?"}})
    assert find_registry_login(text, host) == Credentials("ada", "se:cret")
    assert find_registry_login(text, "nobody.example.com") is None


def test_helpers() -> None:
    text = json.dumps({"credsStore": "pass", "credHelpers": {"gcr.io": "gcloud"}, "auths": {"gcr.io": {}}})
    assert find_helper(text, "gcr.io") == ("gcloud", "gcr.io")
    assert find_helper(text, "registry.example.com") == ("pass", "registry.example.com")
    assert find_helper("{}", "gcr.io") is None
    assert find_registry_login(text, "gcr.io") is None
    assert parse_helper_answer('{"ServerURL": "x", "Username": "ada", "Secret": "s"}') == Credentials("ada", "s")
    assert parse_helper_answer("credentials not found in native keychain") is None
    assert parse_helper_answer("[]") is None


@pytest.mark.parametrize("host", ["docker.io", "registry-1.docker.io"])
@pytest.mark.parametrize("config", [{"credsStore": "pass"}, {"credHelpers": {"docker.io": "pass"}}], ids="-".join)
def test_helper_gets_docker_hubs_name_as_docker_login_writes_it(config: dict[str, object], host: str) -> None:
    assert find_helper(json.dumps(config), host) == ("pass", "https://index.docker.io/v1/")


@pytest.mark.parametrize("auth", ["%%%", "YWRh"])
def test_a_damaged_login_is_said(auth: str) -> None:
    with pytest.raises(PublishError, match=r"the login for registry\.example\.com is damaged"):
        find_registry_login(json.dumps({"auths": {"registry.example.com": {"auth": auth}}}), "registry.example.com")
    with pytest.raises(PublishError, match="is not JSON"):
        find_registry_login("{", "registry.example.com")


def test_logins_of_http_repositories() -> None:
    text = "repositories:\n- {name: a, url: https://a.example/charts/, username: ada, password: secret}\n- {name: b}\n"
    assert find_repository_login(text, "https://a.example/charts") == Credentials("ada", "secret")
    assert find_repository_login(text, "https://a.example") is None
    assert find_repository_login("", "https://a.example") is None


def test_a_password_never_shows() -> None:
    assert "secret" not in repr(Credentials("ada", "secret"))
