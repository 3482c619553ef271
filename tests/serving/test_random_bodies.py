"""Whatever a client sends, it gets an answer that is not a 5xx, and the server goes on."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serving.running import Running

pytestmark = pytest.mark.tensorflow

VALID = [
    ("predict", {"instances": [1.0, 2.0]}),
    ("predict", {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [3]}}),
    ("predict", {"signature_name": "reverse", "instances": ["a", {"b64": "AA=="}]}),
    ("predict", {"signature_name": "picky", "instances": [{"x": 1}]}),
    ("classify", {"signature_name": "classify", "examples": [{"x": 0.5}], "context": {"y": ["a"]}}),
    ("regress", {"signature_name": "regress", "examples": [{"x": [0.5]}]}),
]
KEYS = (
    st.sampled_from(["instances", "inputs", "signature_name", "examples", "context", "x", "a", "b", "b64"]) | st.text()
)
SIGNATURES = st.sampled_from(["serving_default", "pair", "reverse", "picky", "classify", "regress"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | SIGNATURES
VALUES = st.recursive(LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(KEYS, part, max_size=4))
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "signature_name": SIGNATURES | VALUES,
        "instances": st.lists(VALUES, max_size=3) | VALUES,
        "inputs": st.dictionaries(KEYS, VALUES, max_size=3) | VALUES,
        "examples": st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=3) | VALUES,
        "context": VALUES,
    },
)
BODIES = (
    OBJECTS.map(lambda value: json.dumps(value).encode()) | st.binary() | VALUES.map(lambda v: json.dumps(v).encode())
)


class Client:
    """One connection, kept open as long as the server keeps it."""

    def __init__(self, server: Running) -> None:
        self._connection = http.client.HTTPConnection(server.rest, timeout=30)

    def send(self, verb: str, body: bytes) -> None:
        """Send a body, and check that the answer is of the API."""
        self._connection.request("POST", f"/v1/models/half:{verb}", body)
        response = self._connection.getresponse()
        told: Any = json.loads(response.read())
        assert response.status == 200 or 400 <= response.status < 500, (verb, body, response.status, told)
        assert response.status == 200 or list(told) == ["error"], (verb, body, told)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.close()


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(verb=st.sampled_from(["predict", "classify", "regress"]), body=BODIES)
def test_malformed_bodies_never_fail_the_server(client: Client, verb: str, body: bytes) -> None:
    client.send(verb, body)


def change(rng: random.Random, body: bytes) -> bytes:
    """Return a body with some bytes replaced, dropped, doubled or added."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randint(0, 3)] = rng.choice(
            [b"", rng.randbytes(rng.randint(1, 4)), b"[" * rng.randint(1, 80), b"null", b"9" * 30, b'"', b"{", b"1e999"]
        )
    return bytes(data)


def test_random_bodies_never_fail_the_server(client: Client, server: Running) -> None:
    rng = random.Random(20261128)
    for _ in range(10_000):
        verb, value = rng.choice(VALID)
        is_noise = rng.random() < 0.2
        body = rng.randbytes(rng.randint(0, 200)) if is_noise else change(rng, json.dumps(value).encode())
        client.send(verb, body)
    assert server.post("predict", {"instances": [1.0]}).json == {"predictions": [5.0]}
