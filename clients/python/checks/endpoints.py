"""Checks of webhook endpoints at the running bank."""

from typing import Any

from scheduled_payments import Event, WebhookEndpoint, WebhookEndpointOrder, verify

from .fake import Answer, Fake, poll
from .suite import check, equal
from .world import BANK, problem_of

ENDPOINTS = BANK.webhook_endpoints


def put(name: str, url: str, **more: Any) -> WebhookEndpoint:
    """Creates an endpoint, or changes it."""
    return ENDPOINTS.put(name, WebhookEndpointOrder(url=url, **more)).endpoint


def events(fake: Fake, number: int, secret: str) -> list[Event]:
    """Returns the events of a request, once it has arrived."""
    poll(lambda: len(fake.seen) > number)
    return verify(secret, fake.seen[number].headers, fake.seen[number].body.encode())


@check("endpoint-put")
def endpoint_put() -> None:
    order = WebhookEndpointOrder("http://127.0.0.1:9/a", types=["payment.failed"], accounts=["py-1"], enabled=False)
    first, second = ENDPOINTS.put("py-put", order), ENDPOINTS.put("py-put", order)
    equal((first.created, second.created), (True, False))
    endpoint = second.endpoint
    equal((endpoint.url, endpoint.types, endpoint.accounts), (order.url, order.types, order.accounts))
    equal((endpoint.status, endpoint.disabled_by), ("disabled", "operator"))
    equal(ENDPOINTS.get("py-put").id, "py-put")
    equal([one.id for one in ENDPOINTS.list() if one.id == "py-put"], ["py-put"])
    ENDPOINTS.delete("py-put")
    for call in (ENDPOINTS.get, ENDPOINTS.delete, ENDPOINTS.secrets, ENDPOINTS.test):
        error = problem_of(call, "py-put")
        equal((error.status, error.kind), (404, "no-such-endpoint"))
    equal(problem_of(ENDPOINTS.put, "py-put", WebhookEndpointOrder("ftp://a")).kind, "invalid-url")


@check("endpoint-test")
def endpoint_test() -> None:
    with Fake(Answer(204), Answer(204)) as fake:
        # No event but the tests.
        put("py-test", f"{fake.url}/hook", accounts=["py-test"])
        [secret] = ENDPOINTS.secrets("py-test")
        equal((secret.generation, secret.until), (1, None))
        assert secret.secret not in repr(secret)
        assert ENDPOINTS.test("py-test").test_asked_at
        [event] = events(fake, 0, secret.secret)
        equal((event.type_, event.v), ("webhook.test", 1))
        equal(ENDPOINTS.rotate("py-test", 2).secret_generation, 2)
        equal(ENDPOINTS.rotate("py-test", 2).secret_generation, 2)
        equal(problem_of(ENDPOINTS.rotate, "py-test", 4).kind, "wrong-generation")
        new, old = ENDPOINTS.secrets("py-test")
        equal((new.generation, old.generation, old.secret), (2, 1, secret.secret))
        assert new.until is None and old.until is not None
        ENDPOINTS.test("py-test")
        for one in (new, old):
            equal([event.type_ for event in events(fake, 1, one.secret)], ["webhook.test"])
    ENDPOINTS.delete("py-test")


@check("endpoint-replay")
def endpoint_replay() -> None:
    cursor = BANK.events(limit=1).next_cursor
    [second] = BANK.events(cursor, limit=1).events
    with Fake(*[Answer(204)] * 9) as fake:
        put("py-replay", f"{fake.url}/hook")
        ENDPOINTS.replay("py-replay", cursor)
        # Events of different payments come in parallel.
        [secret] = ENDPOINTS.secrets("py-replay")
        poll(lambda: any(second in events(fake, number, secret.secret) for number in range(len(fake.seen))))
    equal(problem_of(ENDPOINTS.replay, "py-replay", "9.1.0").kind, "cursor-gone")
    equal(problem_of(ENDPOINTS.skip, "py-replay", second.id).kind, "not-blocking")
    ENDPOINTS.delete("py-replay")
