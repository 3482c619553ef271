"""What charts give the run controller for run.notify: a Secret that may be missing, a way out, and proxies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

MNIST = Path(__file__).parent.parent.parent / "charts" / "mnist"
RESTRICTED = ("networkPolicy.restrictEgress=true", "networkPolicy.apiServer[0].ipBlock.cidr=198.51.100.7/32")
PROXY = ("env.HTTPS_PROXY=http://proxy:3128", "env.OTHER=1")


def render(*sets: str) -> Rendering:
    return find_engine("sdk").render(MNIST, release="exp", overrides=ValueOverrides(sets=(*RESTRICTED, *PROXY, *sets)))


def controller_pod(rendering: Rendering) -> dict[str, Any]:
    (job,) = (each for each in rendering.manifests if each.kind == "Job")
    pod: dict[str, Any] = job.document["spec"]["template"]["spec"]
    return pod


def environment(rendering: Rendering) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in controller_pod(rendering)["containers"][0]["env"]}


def ways_out(rendering: Rendering) -> dict[str, list[Any]]:
    policies = (each.document for each in rendering.manifests if each.kind == "NetworkPolicy")
    return {each["metadata"]["name"]: each["spec"]["egress"] for each in policies}


def test_messages_without_a_controller_are_refused() -> None:
    with pytest.raises(RenderError) as refusal:
        render("run.notify.secret=channel", "run.controller.enabled=false")
    assert "run.notify: the run controller sends the messages" in " ".join(map(str, refusal.value.problems))


def test_the_controller_gets_what_it_needs_to_send() -> None:
    found = render("run.notify.secret=channel", "run.notify.key=vision")
    (volume,) = (each for each in controller_pod(found)["volumes"] if each["name"] == "notify")
    items = [{"key": "vision", "path": "url"}]
    assert volume["secret"] == {"secretName": "channel", "optional": True, "items": items}
    settings = json.loads(environment(found)["TRAINCHART_RUN_SETTINGS"])["notify"]
    file = "/etc/trainchart-notify/url"
    assert settings == {"file": file, "key": "vision", "secret": "channel", "phases": ["Succeeded", "Failed"]}
    assert environment(found)["HTTPS_PROXY"] == "http://proxy:3128"
    assert "OTHER" not in environment(found)


def test_only_the_controller_gets_a_way_out_and_only_then() -> None:
    before, after = ways_out(render()), ways_out(render("run.notify.secret=channel"))
    rule = {"ports": [{"port": 443, "protocol": "TCP"}]}
    assert after.pop("exp-mnist-controller") == [*before.pop("exp-mnist-controller"), rule]
    assert after == before


def test_without_a_secret_nothing_is_given() -> None:
    found = render("run.notify.phases={Failed}")
    assert [each["name"] for each in controller_pod(found)["volumes"]] == ["config"]
    assert "notify" not in environment(found)["TRAINCHART_RUN_SETTINGS"] and "HTTPS_PROXY" not in environment(found)
