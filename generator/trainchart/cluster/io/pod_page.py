"""Reads a page that a pod serves, through the API server, as `kubectl port-forward` does.

The kubelet connects inside of the pod, so that it needs no route to pods, and no NetworkPolicy is in the way.
"""

from __future__ import annotations

from trainchart.cluster.io.api_frames import Frames, make_headers, read_channels
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, Unreachable
from trainchart.host.deadline import run_within

_SECONDS = 4.0
"""All of it: who waits for a page wants it now."""
_BYTES = 256 * 1024
_DIGITS = 10
"""An answer is read only if its length has fewer digits."""
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
"""Every channel begins with its port."""


def read_pod_page(api: KubernetesApi, namespace: str, pod: str, port: int, path: str) -> bytes:
    """Return what a pod answers to a GET request.

    Raises:
        ClusterError: it cannot be asked, or its answer is none.
    """
    what = f"read {path} of {pod}"
    try:
        answer = run_within(_SECONDS, lambda: _exchange(api, f"api/v1/namespaces/{namespace}/pods/{pod}", port, path))
    except TimeoutError as error:
        raise Unreachable(f"cannot {what}: no answer within {_SECONDS:g} seconds") from error
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or words[1] != b"200":
        raise ClusterError(f"cannot {what}: it answers {b' '.join(words).decode(errors='replace')[:100]!r}")
    return body


def _exchange(api: KubernetesApi, pod: str, port: int, path: str) -> bytes:
    what = f"connect to port {port} of {pod.rpartition('/')[2]}"
    stream = api.open_stream(f"{pod}/portforward", {"ports": str(port)}, make_headers(), what)
    received = {_DATA: b"", _ERROR: b""}
    try:
        frames = Frames(stream, _SECONDS)
        frames.send(bytes((_DATA,)) + f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        for channel, data in read_channels(frames):
            received[channel] = received.get(channel, b"") + data
            error, answer = received[_ERROR][_PORT_BYTES:], received[_DATA][_PORT_BYTES:]
            if error:
                raise ClusterError(f"cannot {what}: {error.decode(errors='replace')[:300]}")
            if len(answer) > _BYTES:
                raise ClusterError(f"cannot {what}: it answers with more than {_BYTES} bytes")
            if _is_whole(answer):
                break
    finally:
        stream.close()
    return received[_DATA][_PORT_BYTES:]


def _is_whole(answer: bytes) -> bool:
    """Return whether an answer has the length that it says; the kubelet may leave the connection open."""
    head, is_headed, body = answer.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        size = value.strip()
        if is_headed and name.strip().lower() == b"content-length" and size.isdigit() and len(size) < _DIGITS:
            return len(body) >= int(size)
    return False
