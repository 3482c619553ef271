"""What the server tells Prometheus. docs/serving.md lists the names, and alerts depend on them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from trainchart_serving.failures import Code
from trainchart_serving.live import LiveModel

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_EXAMPLES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts requests and calls of the model; a page of its own, so that several servers fit into one process."""

    def __init__(self, live: LiveModel) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "trainchart_serving_requests",
            "Requests answered, by gRPC status name.",
            ("protocol", "method", "code"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "trainchart_serving_request_duration_seconds",
            "Time from a request's last byte to its answer.",
            ("protocol", "method"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "trainchart_serving_requests_in_flight", "Requests without an answer yet.", registry=self._registry
        )
        self.queued = Gauge(
            "trainchart_serving_queued_requests", "Requests waiting for a thread.", registry=self._registry
        )
        self._examples = Histogram(
            "trainchart_serving_batch_examples",
            "Examples in one model call.",
            buckets=_EXAMPLES,
            registry=self._registry,
        )
        self._call_seconds = Histogram(
            "trainchart_serving_model_call_duration_seconds",
            "Duration of one model call.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_Versions(live))
        ProcessCollector(registry=self._registry)
        self._requests_of, self._seconds_of = cache(self._requests.labels), cache(self._seconds.labels)

    def observe_request(self, protocol: str, method: str, code: Code, seconds: float) -> None:
        """Count a request that has been answered."""
        self._requests_of(protocol, method, code.name).inc()
        self._seconds_of(protocol, method).observe(seconds)

    def observe_call(self, examples: int, seconds: float) -> None:
        """Count a call of the model. From any thread."""
        self._examples.observe(examples)
        self._call_seconds.observe(seconds)

    def render(self) -> bytes:
        """Return the page in Prometheus' text format."""
        return generate_latest(self._registry)


class _Versions:
    """The versions as they are when Prometheus asks."""

    def __init__(self, live: LiveModel) -> None:
        self._live = live

    def collect(self) -> Iterator[Metric]:
        """Yield the states and the loads."""
        states = GaugeMetricFamily(
            "trainchart_serving_version_state", "1 for the state of a version.", labels=("version", "state", "content")
        )
        for status in self._live.list_known():
            states.add_metric([str(status.version), status.state.name, status.content], 1)
        yield states
        loads = CounterMetricFamily(
            "trainchart_serving_version_loads", "Loads of versions, by outcome.", labels=("result",)
        )
        for result, number in self._live.loads.items():
            loads.add_metric([result], number)
        yield loads
