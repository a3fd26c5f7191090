"""A server that gives the answers of a list, and keeps the requests: for what no healthy bank answers."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from scheduled_payments import Bank, Retries

PROBLEMS = "urn:scheduled-payments:problem:"
PAYMENT: dict[str, Any] = {
    "paymentId": "61ecab5a-6d56-55ab-977e-6dab3db8c000",
    "accountId": "acc-1",
    "payeeAccountId": "acc-2",
    "amountMinor": 12050,
    "currency": "GBP",
    "scheduledFor": "2090-06-15",
    "dueAt": "2090-06-14T23:00:00Z",
    "dueDate": "2090-06-15",
    "status": "SCHEDULED",
    "version": 1,
    "createdAt": "2090-05-20T09:00:00Z",
    "updatedAt": "2090-05-20T09:00:00Z",
    "trail": [{"status": "SCHEDULED", "at": "2090-05-20T09:00:00Z", "by": {"kind": "client", "name": "app"}}],
}


@dataclass
class Answer:
    """An answer. `cut` closes the connection before it, or within its body, or says that it is never given.

    Of a `slow` one, each byte of the body takes a second of the client's clock.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: str = ""
    slow: bool = False


@dataclass
class Seen:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: str


# The bytes of a slow body.
MANY = 1_000_000
# The bank sends a test at once, and events within some seconds.
POLLS = 1000
POLL_SECONDS = 0.02
CREATED = Answer(201, PAYMENT)
GATEWAY_SLOW = Answer(504, {"message": "Endpoint request timed out"})


def problem(status: int, kind: str, **more: Any) -> dict[str, Any]:
    """Returns the body of a problem."""
    known = {"type": PROBLEMS + kind, "title": kind, "status": status, "help": f"/problems/{kind}"}
    return {**known, "detail": "It is so.", **more}


def throttled(seconds: int) -> Answer:
    """Returns the answer of a bank that has too much work."""
    body = problem(503, "throttled", retryAfterSeconds=seconds)
    return Answer(503, body, {"Retry-After": str(seconds), "Content-Type": "application/problem+json"})


def poll(condition: Callable[[], bool]) -> None:
    """Waits until something is so, which the running bank does by itself."""
    for _ in range(POLLS):
        if condition():
            return
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"not within {POLLS * POLL_SECONDS} seconds")


class Fake:
    """The server, and a bank's client for it that keeps its pauses instead of waiting."""

    def __init__(
        self, *answers: Answer, random: float = 0.0, token: Any = "t", timeout: float = 35.0, **retries: Any
    ) -> None:
        self.answers = list(answers)
        self.seen: list[Seen] = []
        self.pauses: list[float] = []
        self.now = 0.0
        self._end = threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                fake.answer(self)

            do_GET = do_PUT = do_POST

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.retries = Retries(wait=self._wait, clock=lambda: self.now, random=lambda: random, **retries)
        self.bank = Bank(self.url, token, retries=self.retries, timeout=timeout)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Keeps a request and gives the next answer of the list."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        self.seen.append(Seen(handler.path, {name.lower(): value for name, value in handler.headers.items()}, body))
        answer = self.answers.pop(0) if self.answers else Answer(418, {"message": "no answer is left"})
        if answer.cut == "never":
            self._end.wait()
        if answer.cut in ("before", "never"):
            handler.close_connection = True
            return
        content = answer.body if isinstance(answer.body, str | bytes) else json.dumps(answer.body)
        content = content.encode() if isinstance(content, str) else content
        handler.send_response(answer.status)
        for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
            handler.send_header(name, value)
        # A slow body goes on until the client gives up, which is long before its end.
        handler.send_header("Content-Length", str(MANY if answer.slow else len(content)))
        handler.end_headers()
        if answer.slow:
            self.trickle(handler)
            return
        handler.wfile.write(content[: len(content) // 2] if answer.cut else content)
        handler.close_connection = bool(answer.cut)

    def trickle(self, handler: BaseHTTPRequestHandler) -> None:
        """Sends a body byte by byte."""
        handler.close_connection = True
        with suppress(OSError):
            for _ in range(MANY):
                self.now += 1.0
                handler.wfile.write(b" ")

    def _wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __enter__(self) -> "Fake":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self.bank.close()
        self._server.shutdown()
        self._server.server_close()
