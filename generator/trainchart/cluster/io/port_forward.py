"""Makes a port of a pod one of this machine, through the API server, as `kubectl port-forward` does.

The kubelet connects inside of the pod, so that no NetworkPolicy is in the way, and no one but this machine gets in.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from trainchart.cluster.io.api_frames import Frames, make_headers, read_channels
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, ToolError

HOST = "127.0.0.1"
_DATA = 0
_PORT_BYTES = 2
"""Every channel begins with its port."""
_SILENT_SECONDS = 30.0
"""How long a message that has begun may take."""
_BLOCK = 32 * 1024


class PortForward:
    """Listens on this machine; each connection gets one of its own to the pod, in a thread of its own."""

    def __init__(
        self, api: KubernetesApi, namespace: str, find_pod: Callable[[], str], port: int, local_port: int = 0
    ) -> None:
        """Listen. `find_pod` names the pod for each connection; `local_port` 0 is any that is free.

        Raises:
            ToolError: the port of this machine is taken.
        """
        self._api, self._namespace, self._find_pod, self._port = api, namespace, find_pod, port
        try:
            self._listener = socket.create_server((HOST, local_port))
        except OSError as error:
            raise ToolError(
                f"cannot listen on port {local_port} of {HOST}: {error.strerror or error}",
                hint="choose another port, or 0 for any free port: --port",
            ) from error
        self.local_port: int = self._listener.getsockname()[1]
        self.last_error = ""
        """Why a connection to the pod has failed the last time."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        # A close alone does not wake the thread that waits in accept.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The browser is answered by the end of its connection; it tries again.
        with connection, suppress(OSError):
            try:
                self._relay(connection)
            except ClusterError as error:
                self.last_error = error.message

    def _relay(self, connection: socket.socket) -> None:
        pod = self._find_pod()
        path = f"api/v1/namespaces/{self._namespace}/pods/{pod}/portforward"
        what = f"connect to port {self._port} of {pod}"
        stream = self._api.open_stream(path, {"ports": str(self._port)}, make_headers(), what)
        try:
            frames = Frames(stream, _SILENT_SECONDS)
            received = _drop_ports(read_channels(frames))
            while True:
                waiting = [connection, stream.socket]
                ready = [stream.socket] if frames.is_waiting() else select.select(waiting, [], [])[0]
                if stream.socket in ready:
                    channel, data = next(received, (_DATA, None))
                    if data is None:
                        return
                    if channel == _DATA:
                        connection.sendall(data)
                    elif data:
                        raise ClusterError(f"cannot {what}: {data.decode(errors='replace')[:300]}")
                if connection in ready:
                    sent = connection.recv(_BLOCK)
                    if not sent:
                        return
                    frames.send(bytes((_DATA,)) + sent)
        finally:
            stream.close()


def _drop_ports(messages: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the messages without the port with which each channel begins."""
    left: dict[int, int] = {}
    for channel, data in messages:
        dropped = left.get(channel, _PORT_BYTES)
        left[channel] = max(0, dropped - len(data))
        yield channel, data[dropped:]
