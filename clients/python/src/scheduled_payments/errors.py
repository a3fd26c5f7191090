"""The exceptions of the client."""

import json
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Fault:
    """One of the faults of a body: its place as a JSON Pointer, its type and its detail."""

    pointer: str
    type: str
    detail: str


class BankError(Exception):
    """A request that did not succeed. `status` is None if there was no answer."""

    def __init__(self, detail: str, status: int | None = None, headers: httpx.Headers | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.request_id: str | None = headers.get("X-Request-Id") if headers else None
        self.retry_after: float | None = seconds(headers.get("Retry-After")) if headers else None


class NoAnswer(BankError):
    """No answer: the connection was refused or lost, or too slow. The request may have taken effect."""

    def __init__(self, url: httpx.URL, error: httpx.TransportError) -> None:
        super().__init__(f"No answer from {url.host}: {error or type(error).__name__}")


class GatewayError(BankError):
    """An error without a problem: of API Gateway, of something between, or of the issuer of tokens."""


class ProblemError(BankError):
    """A problem of the API. `kind` is the end of its type, such as `no-such-payment`; docs/problems.md has all."""

    def __init__(self, problem: dict[str, Any], status: int, headers: httpx.Headers) -> None:
        super().__init__(problem["detail"], status, headers)
        self.type: str = problem["type"]
        self.kind = self.type.rpartition(":")[2]
        self.title: str | None = problem.get("title")
        self.help: str | None = problem.get("help")
        self.field: str | None = problem.get("field")
        self.fields: list[str] = problem.get("fields", [])
        self.errors = [Fault(fault["pointer"], fault["type"], fault["detail"]) for fault in problem.get("errors", [])]
        self.excess_bytes: int | None = problem.get("excessBytes")
        self.current_version: int | None = problem.get("currentVersion")
        self.oldest_cursor: str | None = problem.get("oldestCursor")
        self.request_id = problem.get("requestId", self.request_id)
        self.retry_after = self.retry_after or problem.get("retryAfterSeconds")

    def __str__(self) -> str:
        return f"{self.status} {self.kind}: {self.detail}"


def from_response(response: httpx.Response) -> BankError:
    """Returns the error that a response other than a success is."""
    status, headers = response.status_code, response.headers
    try:
        body = response.json()
    except (ValueError, UnicodeDecodeError):
        body = None
    if not isinstance(body, dict):
        return GatewayError(response.text or response.reason_phrase, status, headers)
    if isinstance(body.get("type"), str) and isinstance(body.get("detail"), str):
        return ProblemError(body, status, headers)
    return GatewayError(str(body.get("message") or json.dumps(body)), status, headers)


def seconds(text: str | None) -> float | None:
    """Returns the seconds of a header, or None for a date or nonsense."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
