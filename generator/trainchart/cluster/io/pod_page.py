"""Reads a page that a pod serves, through the API server, as `kubectl port-forward` does.

The kubelet connects inside of the pod, so that it needs no route to pods, and no NetworkPolicy is in the way.
"""

from __future__ import annotations

import math

from trainchart.cluster.io.api_frames import Frames, make_headers, read_channels
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, Unreachable
from trainchart.host.deadline import run_within

_SECONDS = 4.0
"""All of it: who waits for a page wants it now."""
_BYTES = 256 * 1024
_DIGITS = 10
"""An answer is read only if its length has fewer digits."""
_HEAD_END = b"\r\n\r\n"
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
"""Every channel begins with its port."""


def read_pod_page(api: KubernetesApi, namespace: str, pod: str, port: int, path: str) -> bytes:
    """Return what a pod answers to a GET request.

    Raises:
        ClusterError: it cannot be asked, or its answer is none.
    """
    what, place = f"read {path} of {pod}", f"api/v1/namespaces/{namespace}/pods/{pod}"
    try:
        answer = run_within(_SECONDS, lambda end: _exchange(api, place, port, path, end))
    except TimeoutError as error:
        raise Unreachable(f"cannot {what}: no answer within {_SECONDS:g} seconds") from error
    head, _, body = answer.partition(_HEAD_END)
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or words[1] != b"200":
        raise ClusterError(f"cannot {what}: it answers {b' '.join(words).decode(errors='replace')[:100]!r}")
    return body


def _exchange(api: KubernetesApi, pod: str, port: int, path: str, end: float) -> bytes:
    what = f"connect to port {port} of {pod.rpartition('/')[2]}"
    stream = api.open_stream(f"{pod}/portforward", {"ports": str(port)}, make_headers(), what)
    received: dict[int, bytearray] = {_DATA: bytearray(), _ERROR: bytearray()}
    answer, error = received[_DATA], received[_ERROR]
    size: float | None = None
    try:
        frames = Frames(stream, _SECONDS, end)
        frames.send(bytes((_DATA,)) + f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        for channel, data in read_channels(frames):
            if channel in received:
                received[channel] += data
            if len(error) > _PORT_BYTES:
                words = error[_PORT_BYTES:].decode(errors="replace")
                raise ClusterError(f"cannot {what}: {words[:300]}")
            if len(answer) > _PORT_BYTES + _BYTES:
                raise ClusterError(f"cannot {what}: it answers with more than {_BYTES} bytes")
            if size is None and _HEAD_END in answer[-len(data) - len(_HEAD_END) :]:
                size = _find_size(answer)
            if size is not None and len(answer) >= size:
                break
    finally:
        stream.close()
    return bytes(answer[_PORT_BYTES:])


def _find_size(answer: bytearray) -> float:
    """Return how long an answer with a whole head is, as it says; the kubelet may leave the connection open."""
    head, end, _ = answer.partition(_HEAD_END)
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        digits = value.strip()
        if name.strip().lower() == b"content-length" and digits.isdigit() and len(digits) < _DIGITS:
            return len(head) + len(end) + int(digits)
    return math.inf
