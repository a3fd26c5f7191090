"""Ends an attempt that takes too long as a whole. The timeouts of httpx are those of each single read and write."""

import ssl
import threading
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx


class Deadline:
    """The deadline of the attempt that this thread is making."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._attempt = threading.local()

    def begin(self) -> None:
        """Begins an attempt."""
        self._attempt.end = self._clock() + self._seconds

    def left(self, timeout: float | None) -> float:
        """Returns how long one read or write may take."""
        left: float = self._attempt.end - self._clock()
        if left <= 0:
            raise httpcore.ReadTimeout(f"no whole answer within {self._seconds:g} seconds")
        return left if timeout is None else min(left, timeout)

    def watch(self, client: httpx.Client) -> None:
        """Keeps each connection of a client within the deadline. httpx has no public way to do so."""
        for transport in (client._transport, *client._mounts.values()):
            if isinstance(transport, httpx.HTTPTransport):
                transport._pool._network_backend = Backend(self)


class Backend(httpcore.NetworkBackend):
    """Opens connections that keep within the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Opens a connection."""
        left = self._deadline.left(timeout)
        return Stream(self._backend.connect_tcp(host, port, left, local_address, socket_options), self._deadline)


class Stream(httpcore.NetworkStream):
    """A connection that keeps within the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Reads what has come."""
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Writes all of it."""
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        """Closes the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Begins TLS."""
        left = self._deadline.left(timeout)
        return Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Returns what is known of the connection."""
        return self._stream.get_extra_info(info)
