"""Addresses of pages: any name that a run can have leads back to it, and nothing leads out of the runs."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.support.console_reports import HOSTILE
from trainchart.console.addresses import address_of, parse_cluster, parse_local, parse_server
from trainchart.console.views import RunRef


@pytest.mark.parametrize(
    "name", ["exp-7", "a b", "ü", "%2e%2e", "?x#y", *(text for text in HOSTILE if "/" not in text)]
)
def test_a_local_run_of_any_name_has_an_address(name: str) -> None:
    address = address_of(RunRef("local", "", name, ""))
    assert address.startswith("/runs/local/")
    assert set(address) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/%")
    assert parse_local(unquote(address.removeprefix("/runs/local/"))) == RunRef("local", "", name, "")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b"])
def test_no_address_leads_out_of_the_folder_of_runs(name: str) -> None:
    assert parse_local(name) is None


def test_names_that_no_object_has_are_refused() -> None:
    assert parse_cluster("team-a", "exp-7", "mnist") == RunRef("cluster", "team-a", "exp-7", "mnist")
    assert parse_cluster("team-a", "exp 7", "mnist") is None
    assert parse_cluster("", "exp-7", "mnist") is None
    assert parse_cluster("..", "exp-7", "mnist") is None
    assert parse_cluster("team-a", ".", "mnist") is None
    assert parse_server("..", "digits") is None
    assert parse_cluster("team-a", "exp-7?watch=1", "mnist") is None
