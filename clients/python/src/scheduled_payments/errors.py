"""The exceptions of the client."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from .answers import from_json, seconds


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

    def __init__(self, url: httpx.URL, error: httpx.RequestError) -> None:
        super().__init__(f"No answer from {url.netloc.decode()}: {error or type(error).__name__}")


class GatewayError(BankError):
    """An error without a problem: of API Gateway, of something between, or of the issuer of tokens.

    With the status of a success, the request may have taken effect, or the issuer of tokens gave no token.
    """


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
        self.retry_after = self.retry_after or seconds(problem.get("retryAfterSeconds"))

    def __str__(self) -> str:
        return f"{self.status} {self.kind}: {self.detail}"


def from_response(response: httpx.Response) -> BankError:
    """Returns the error that a response other than a success is."""
    status, headers = response.status_code, response.headers
    body = from_json(response)
    if not isinstance(body, dict):
        return GatewayError(response.text or response.reason_phrase, status, headers)
    if is_problem(body):
        return ProblemError(body, status, headers)
    return GatewayError(str(body.get("message") or json.dumps(body)), status, headers)


def is_problem(body: dict[str, Any]) -> bool:
    """Returns whether a body has what a problem needs, and nothing of another type than it should be."""
    texts = ("title", "help", "field", "oldestCursor", "requestId")
    return (
        all(isinstance(body.get(name), str) for name in ("type", "detail"))
        and all(isinstance(body.get(name, ""), str) for name in texts)
        and all(type(body.get(name, 0)) is int for name in ("excessBytes", "currentVersion"))
        and is_list(body.get("fields", []), lambda field: isinstance(field, str))
        and is_list(body.get("errors", []), is_fault)
    )


def is_fault(fault: Any) -> bool:
    """Returns whether this is a fault of a body."""
    names = ("pointer", "type", "detail")
    return isinstance(fault, dict) and all(isinstance(fault.get(name), str) for name in names)


def is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    """Returns whether this is a list of such items."""
    return isinstance(value, list) and all(map(is_item, value))
