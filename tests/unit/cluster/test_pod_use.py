"""What pods use and request, out of the metrics API's and the launchers' answers, hostile ones among them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainchart.cluster.pod_use import parse_launcher_use, parse_pod_metrics, sum_amounts
from trainchart.errors import ClusterError
from trainchart.reports.pod_use import Amounts, GpuUse, Use


def make_metrics(*usages: object) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "usage": usage} for number, usage in enumerate(usages)]
    return {"metadata": {"name": "p", "namespace": "n"}, "containers": containers}


def parse(*usages: object) -> Use | None:
    return parse_pod_metrics((make_metrics(*usages),)).get(("n", "p"))


@pytest.mark.parametrize(
    ("cpu", "cores"),
    [("156340123n", 0.156340123), ("12u", 1.2e-5), ("250m", 0.25), ("2", 2.0), ("0", 0.0)],
)
def test_cpus_are_counted_in_any_unit(cpu: str, cores: float) -> None:
    found = parse({"cpu": cpu, "memory": "1Ki"})
    assert found is not None and found.cpu == pytest.approx(cores, abs=1e-12)
    assert (found.memory_bytes, found.source) == (1024.0, "metrics-api")


def test_containers_of_a_pod_are_added() -> None:
    found = parse({"cpu": "1", "memory": "1Mi"}, {"cpu": "500m", "memory": "1Mi"})
    assert found is not None and (found.cpu, found.memory_bytes) == (1.5, 2.0 * 2**20)


@pytest.mark.parametrize("value", [None, "", "-1", "1e400", "9" * 100_000, "nan", [], {"a": 1}, True, "5X", "1e30"])
def test_quantities_that_no_machine_has_are_unknown(value: object) -> None:
    assert parse({"cpu": value, "memory": value}) is None
    known = parse({"cpu": "1", "memory": "1Mi"}, {"cpu": value, "memory": "1Mi"})
    assert known is not None and (known.cpu, known.memory_bytes) == (None, 2.0 * 2**20)


@pytest.mark.parametrize("each", [{}, {"metadata": 5, "containers": "x"}, {"containers": [5, {"usage": []}]}])
def test_objects_of_another_form_say_nothing(each: dict[str, Any]) -> None:
    assert parse_pod_metrics((each,)) == {}


def tell(use: object) -> Use:
    return parse_launcher_use(json.dumps({"step": 5, "use": use}).encode())


def test_a_launcher_tells_cpu_memory_and_gpus() -> None:
    gpu = {"memoryBytes": 5, "memoryTotalBytes": 10, "utilization": 37}
    found = tell({"cpu": 1.5, "memoryBytes": 100, "gpus": [gpu, {"memoryBytes": 5}]})
    assert found == Use(1.5, 100.0, (GpuUse(5.0, 10.0, 37.0), GpuUse(5.0)), "launcher")


@pytest.mark.parametrize("value", [-1, 1e30, True, "5", None, [], 10**400])
def test_numbers_that_no_launcher_measures_are_unknown(value: object) -> None:
    gpu = {"memoryBytes": value, "memoryTotalBytes": value, "utilization": value}
    assert tell({"cpu": value, "memoryBytes": value, "gpus": [gpu]}) == Use(gpus=(GpuUse(),), source="launcher")


def test_a_launcher_with_endless_gpus_is_bounded() -> None:
    assert len(tell({"gpus": [{}] * 10_000}).gpus) == 64
    assert tell({"gpus": ["x", 5, None]}).gpus == tell({"gpus": {"a": 1}}).gpus == ()


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b"[" * 100_000, b"{}", b'{"use": 5}', b'{"use": {"cpu": NaN}}'])
def test_a_status_without_use_is_an_error(text: bytes) -> None:
    with pytest.raises(ClusterError):
        parse_launcher_use(text)


def make_container(requests: object = None, limits: object = None, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits}, **more}


def test_requests_and_limits_are_those_of_all_containers() -> None:
    sidecar = make_container({"cpu": "100m"}, {"memory": "1Gi"}, restartPolicy="Always")
    waits = make_container({"cpu": "64"}, {"memory": "64Gi"})
    main = make_container(None, {"cpu": "2", "memory": "1Gi"})
    spec = {"containers": [main], "initContainers": [waits, sidecar]}
    assert sum_amounts({"spec": spec}) == Amounts(2.1, 2.0 * 2**30)
    spec["containers"] = [main, make_container({"cpu": "1"})]
    assert sum_amounts({"spec": spec}) == Amounts(3.1, None), "one container without a limit has no limit at all"
    assert sum_amounts({"spec": {"containers": [make_container("x", 5)]}}) == sum_amounts({}) == Amounts()
