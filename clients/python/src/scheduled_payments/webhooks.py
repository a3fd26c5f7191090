"""Verifies the requests that the bank sends to a webhook endpoint, by Standard Webhooks."""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

from .answers import MALFORMED, check_amounts, refuse
from .generated.models import Event

# Seconds that a message may be older or newer than this machine's clock.
TOLERANCE = 300.0
# Standard Webhooks knows no shorter secret. The bank's have 32 bytes.
MIN_SECRET_BYTES = 24

WebhookErrorKind: TypeAlias = Literal["missing-header", "wrong-signature", "too-old", "too-new", "not-events"]


class Headers(Protocol):
    """The headers of a request: a mapping, or what a framework has instead."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class WebhookError(Exception):
    """A request that must not be trusted. Answer it with 400."""

    def __init__(self, kind: WebhookErrorKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: WebhookErrorKind = kind
        self.detail = detail


def verify(
    secrets: str | Iterable[str],
    headers: Headers,
    body: bytes,
    tolerance: float = TOLERANCE,
    *,
    clock: Callable[[], float] = time.time,
) -> list[Event]:
    """Returns the events of a request. Raises a WebhookError unless the bank sent these bytes within the tolerance.

    Give all secrets that you know: one has to fit. The names of headers may be in any case.
    """
    keys = [key_bytes(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("there is no secret to verify with")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError(f"the body must be the received bytes, not {type(body).__name__}")
    found = {name.lower(): value for name, value in headers.items()}
    message, sent, signatures = (header(found, f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    check_signature(keys, f"{message}.{sent}.".encode(errors="replace") + bytes(body), signatures)
    check_time(sent, clock(), tolerance)
    return read_events(bytes(body))


def key_bytes(secret: str) -> bytes:
    """Returns the key of a secret. An error never shows the secret."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError("a secret must be the text whsec_… that the bank shows for the endpoint")
    return key


def header(headers: dict[str, str], name: str) -> str:
    """Returns a header's value."""
    if value := headers.get(name):
        return value
    raise WebhookError("missing-header", f"the header {name} is missing or empty; pass all headers of the request")


def check_signature(keys: list[bytes], signed: bytes, signatures: str) -> None:
    """Raises a WebhookError unless one of the signatures is by one of the keys. Each comparison takes the same time."""
    wanted = [b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256")) for key in keys]
    given = [one.encode(errors="replace") for one in signatures.split(" ")]
    if not any([hmac.compare_digest(one, other) for one in wanted for other in given]):
        detail = "no signature fits; use this endpoint's secrets, and the bytes of the body as they were received"
        raise WebhookError("wrong-signature", detail)


def check_time(sent: str, now: float, tolerance: float) -> None:
    """Raises a WebhookError unless a message is of now."""
    if not (sent.isascii() and sent.isdigit()):
        raise WebhookError("wrong-signature", f"the bank signs no message with the timestamp {sent!r}")
    age = int(now) - int(sent)
    if abs(age) <= tolerance:
        return
    if age > 0:
        detail = f"it was signed {age} seconds ago; somebody sent it again, or this machine's clock is ahead"
        raise WebhookError("too-old", detail)
    raise WebhookError("too-new", f"it was signed {-age} seconds ahead of this machine's clock, which may be behind")


def read_events(body: bytes) -> list[Event]:
    """Returns the events of a body."""
    try:
        answer = json.loads(body, parse_constant=refuse)
        check_amounts(answer)
        if not isinstance(answer["events"], list):
            raise TypeError("the events are not a list")
        return [Event.from_dict(event) for event in answer["events"]]
    except MALFORMED as error:
        raise WebhookError("not-events", f"not the message that openapi.yaml describes: {error!r}") from error
