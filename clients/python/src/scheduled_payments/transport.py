"""Sends each request with a token, again if that helps, and turns every other answer into an exception."""

import threading

import httpx

from .deadline import Deadline
from .errors import BankError, NoAnswer, from_response
from .retries import Retries
from .tokens import Source, Token


class Transport(httpx.BaseTransport):
    """The transport of the generated code."""

    def __init__(self, token: Token, retries: Retries, timeout: float) -> None:
        # Proxies of the environment are used, as httpx does by default. A redirection is an error: see `from_response`.
        self._client = httpx.Client(timeout=timeout)
        self._deadline = Deadline(timeout, retries.clock)
        self._deadline.watch(self._client)
        self._token = Source(token, self._send)
        self._retries = retries
        self._last = threading.local()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Returns a success, or raises a BankError."""
        request.read()
        self._last.success = None
        tries = self._retries.begin()
        while True:
            try:
                return self._attempt(request)
            except BankError as error:
                if not tries.again(error):
                    raise

    def _attempt(self, request: httpx.Request) -> httpx.Response:
        token = self._token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        response = self._send(request)
        if not response.is_success:
            raise from_response(response)
        self._last.success = response
        return response

    def last_success(self) -> httpx.Response | None:
        """Returns the success of this thread's last request, if it was one."""
        success: httpx.Response | None = getattr(self._last, "success", None)
        return success

    def forget(self) -> None:
        """Forgets this thread's last request."""
        self._last.success = None

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Returns the whole answer of a request, or raises NoAnswer."""
        self._deadline.begin()
        try:
            return self._client.send(request)
        except httpx.UnsupportedProtocol:
            # No later attempt can succeed: the URL is wrong.
            raise
        except httpx.RequestError as error:
            raise NoAnswer(request.url, error) from error

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()
