"""Sends each request with a token, again if that helps, and turns every other answer into an exception."""

import httpx

from .errors import BankError, NoAnswer, from_response
from .retries import Retries
from .tokens import Source, Token


class Transport(httpx.BaseTransport):
    """What the generated code sends its requests with."""

    def __init__(self, token: Token, retries: Retries, timeout: float) -> None:
        # Proxies of the environment are used, as httpx does by default. A redirection is an error: see `from_response`.
        self._client = httpx.Client(timeout=timeout)
        self._token = Source(token, lambda request: send(self._client, request))
        self._retries = retries

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Returns a success, or raises a BankError."""
        request.read()
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
        response = send(self._client, request)
        if not response.is_success:
            raise from_response(response)
        return response

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def send(client: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Returns the whole answer of a request, or raises NoAnswer."""
    try:
        return client.send(request)
    except httpx.UnsupportedProtocol:
        # No later attempt can succeed: the URL is wrong.
        raise
    except httpx.TransportError as error:
        raise NoAnswer(request.url, error) from error
