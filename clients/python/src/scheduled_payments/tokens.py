"""Access tokens: a text, a function that returns one, or the credentials of a client."""

import base64
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from .answers import from_json, seconds
from .errors import GatewayError, from_response

# A token is renewed so many seconds before it expires, or after half of its life if that is shorter.
EARLY_SECONDS = 60.0


@dataclass(frozen=True)
class ClientCredentials:
    """The credentials of a machine's client, and the URL where its issuer gives tokens."""

    id: str
    secret: str = field(repr=False)
    token_url: str
    scope: str | None = None
    clock: Callable[[], float] = time.monotonic


Token = str | Callable[[], str] | ClientCredentials | None


class Source:
    """Returns the token for a request, and renews that of a client's credentials before it expires."""

    def __init__(self, token: Token, send: Callable[[httpx.Request], httpx.Response]) -> None:
        self._token = token
        self._send = send
        self._lock = threading.Lock()
        self._current = ""
        self._renew_at = float("-inf")

    def __call__(self) -> str | None:
        """Returns the token of this moment, or raises a BankError if the issuer refuses or does not answer."""
        if not isinstance(self._token, ClientCredentials):
            return self._token() if callable(self._token) else self._token
        with self._lock:
            if self._token.clock() >= self._renew_at:
                self._renew(self._token)
            return self._current

    def _renew(self, credentials: ClientCredentials) -> None:
        form = {"grant_type": "client_credentials"} | ({"scope": credentials.scope} if credentials.scope else {})
        asked = credentials.clock()
        basic = base64.b64encode(f"{credentials.id}:{credentials.secret}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}"}
        response = self._send(httpx.Request("POST", credentials.token_url, data=form, headers=headers))
        if not response.is_success:
            raise from_response(response)
        answer = from_json(response)
        token = answer.get("access_token") if isinstance(answer, dict) else None
        lives = seconds(answer.get("expires_in", 0)) if isinstance(answer, dict) else None
        if not isinstance(token, str) or lives is None:
            detail = "The issuer's answer has no access_token, or no number of seconds as expires_in."
            raise GatewayError(detail, response.status_code, response.headers)
        self._current = token
        self._renew_at = asked + lives - min(EARLY_SECONDS, lives / 2)
