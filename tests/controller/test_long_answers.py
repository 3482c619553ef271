"""Answers of the API server that are long because others have made large pods and Events: little memory is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.controller.fake_api import PODS_PATH, make_pod
from trainchart_controller import api as api_module
from trainchart_controller.api import Api, TooLong
from trainchart_runtime import causes

ARGUMENTS = [f"{number:08}" for number in range(110_000)]
"""1.2 MB, which is nearly what the API server accepts."""


def make_stranger(name: str, arguments: list[str]) -> dict[str, Any]:
    """A pod with the labels of the release that no StatefulSet has created."""
    pod = make_pod("x-0")
    pod["metadata"]["name"] = name
    del pod["metadata"]["ownerReferences"]
    pod["spec"]["containers"][0]["args"] = arguments
    return pod


def read_peak(process: Any) -> int:
    """The most MiB that a controller has needed so far."""
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def connect(api: Any) -> Api:
    return Api("127.0.0.1", api.port, str(api.folder))


def test_large_pods_of_others_need_little_memory(api, start, run_to_phase):
    for number in range(12):
        api.put_pod(make_stranger(f"stranger-{number}", ARGUMENTS))
    controller = start()
    run_to_phase("Running")
    assert read_peak(controller) < 80


def test_large_events_of_others_need_little_memory(api, start):
    about = {"kind": "StatefulSet", "name": "exp1-mnist-worker"}
    words = {"reason": "FailedCreate", "message": "failed quota: " * 71_000, "lastTimestamp": "2026-11-30T00:00:00Z"}
    api.warnings = [{"involvedObject": about, **words} for _ in range(30)]
    controller = start()
    api.wait_for(lambda: api.seen("GET", "continue=19") == 2, "both lists of Events read")
    assert read_peak(controller) < 80


def test_watch_event_that_is_too_long_is_followed_by_a_list(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    lists = api.seen("GET", "limit=")
    api.put_pod(make_stranger("stranger-0", ["x" * 5_000_000]))
    api.wait_for(lambda: api.seen("GET", "limit=") > lists and api.open_watches() == 1, "listed again")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert "watching pods: the watch sent an event of more than 4194304 bytes" in controller.log


def test_watch_refuses_an_event_that_is_too_long(api, monkeypatch):
    monkeypatch.setattr(api_module, "_EVENT_LIMIT", 1000)
    api.put_pod(make_stranger("stranger-0", ["x" * 1000]))
    with pytest.raises(TooLong, match="an event of more than 1000 bytes"):
        list(connect(api).watch(f"{PODS_PATH}?watch=1&resourceVersion=0", 10))


def test_answer_that_is_too_long_is_an_api_error(api):
    connection = connect(api)
    with pytest.raises(TooLong, match=f"GET {PODS_PATH}: the answer has more than 1000 bytes"):
        connection.request("GET", PODS_PATH, limit=1000)
    assert connection.request("GET", PODS_PATH)["items"]


def test_page_that_is_too_long_is_read_in_smaller_ones(api, monkeypatch):
    monkeypatch.setattr(api_module, "_PAGE_LIMIT", 3000)
    for number in range(9):
        api.put_pod(make_stranger(f"stranger-{number}", ["x" * 2000 * (number == 4)]))
    found = connect(api).read_list(PODS_PATH, {}, 25, lambda pod: pod["metadata"]["name"])
    assert sorted(found.items) == sorted(api._pods)
    sizes = [path.partition("limit=")[2].partition("&")[0] for _, path in api.requests]
    assert sizes[:3] == ["25", "5", "10"] and "1" in sizes and len(sizes) < 15 and found.version
    assert len(connect(api).read_list(PODS_PATH, {}, 2, dict, most=3).items) == 6


def test_a_hundred_pods_are_listed_in_four_requests(api):
    for number in range(97):
        api.put_pod(make_stranger(f"stranger-{number}", []))
    assert len(connect(api).read_list(PODS_PATH, {}, 25, dict).items) == len(api.requests) * 25 == 100
