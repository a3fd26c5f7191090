"""Checks of answers that no bank gives, but something broken or hostile between could."""

import json
from typing import Any

from scheduled_payments import Bank, BatchEntry, ClientCredentials, Retries

from .batches import created, entry, keys, rejected
from .fake import CREATED, PAYMENT, Answer, Fake, problem
from .suite import check, equal
from .world import day, error_of, order, problem_of


def broken(call: Any, *arguments: Any, status: int = 200) -> None:
    """Fails if a call does not raise a GatewayError with this status."""
    error = error_of(call, *arguments)
    equal((type(error).__name__, error.status), ("GatewayError", status))


@check("broken-success")
def broken_success() -> None:
    deep = "[" * 100_000
    for body in ("<html>", "", "[]", "null", "5", '"x"', "{}", b'{"paymentId": "\xff"}', '{"a": NaN}', deep):
        with Fake(Answer(201, body), Answer(200, body), Answer(200, body), CREATED) as fake:
            broken(fake.bank.create, "acc-1", "key-1", order(), status=201)
            broken(list, fake.bank.list("acc-1"))
            broken(fake.bank.events)
            equal(len(fake.seen), 3)
    # A body that cannot be unpacked was lost on its way.
    with Fake(Answer(201, "no gzip", {"Content-Encoding": "gzip"}), attempts=1) as fake:
        equal(type(error_of(fake.bank.create, "acc-1", "key-1", order())).__name__, "NoAnswer")


@check("odd-amounts")
def odd_amounts() -> None:
    for amount in ('"1"', "1.5", "NaN", "true", "[1]"):
        payment = json.dumps(PAYMENT).replace("12050", amount)
        page = f'{{"payments": [{payment}], "nextCursor": null}}'
        event = {"v": 1, "id": "1", "type": "x", "at": "2090-06-15T09:00:00Z", "epoch": 1, "amountMinor": 12050}
        events = json.dumps({"events": [event], "nextCursor": "1.2.0", "hasMore": False}).replace("12050", amount)
        with Fake(Answer(201, payment), Answer(200, page), Answer(200, page), Answer(200, events)) as fake:
            broken(fake.bank.create, "acc-1", "key-1", order(), status=201)
            broken(list, fake.bank.list("acc-1"))
            broken(list, fake.bank.due(day(0)))
            broken(fake.bank.events)


@check("broken-problem")
def broken_problem() -> None:
    odd: list[Any] = [5, [1], [{}], [{"pointer": 1, "type": "x", "detail": "y"}], {}]
    for errors in odd:
        with Fake(Answer(422, problem(422, "invalid-body", errors=errors))) as fake:
            broken(fake.bank.create, "acc-1", "key-1", order(), status=422)


@check("odd-retry-after")
def odd_retry_after() -> None:
    for seconds in ("x", [1], -5, None):
        with Fake(Answer(503, problem(503, "throttled", retryAfterSeconds=seconds)), CREATED) as fake:
            fake.bank.create("acc-1", "key-1", order())
            equal(fake.pauses, [0.5])
        busy = rejected("a", 503, "throttled", retryAfterSeconds=seconds)
        with Fake(Answer(body={"results": [busy]}), Answer(body={"results": [created("a")]})) as fake:
            equal([one.status_code for one in fake.bank.create_account_batch("acc-1", [entry("a")])], [201])
            equal(fake.pauses, [0.5])
    with Fake(Answer(503, problem(503, "throttled", retryAfterSeconds="x")), attempts=1) as fake:
        error = problem_of(fake.bank.create, "acc-1", "key-1", order())
        equal((error.kind, error.retry_after), ("throttled", None))


@check("broken-token")
def broken_token() -> None:
    answers: list[Any] = ["x", 5, "[]", {}, {"access_token": 5}]
    answers += [{"access_token": "t", "expires_in": seconds} for seconds in ("soon", -1, [60], True)]
    for answer in answers:
        with Fake(Answer(200, answer), CREATED) as fake:
            issuer = ClientCredentials("id", "secret", f"{fake.url}/token")
            with Bank(fake.url, issuer, retries=Retries(attempts=1)) as bank:
                broken(bank.create, "acc-1", "key-1", order())
            equal(len(fake.seen), 1)


@check("batch-mismatch")
def batch_mismatch() -> None:
    a, b = created("a"), created("b")
    entries = [entry("a"), entry("b")]
    for results in ([], [a], [a, b, a], [b, a], [a, created("c")], [rejected("b", 422, "x"), b]):
        with Fake(Answer(body={"results": results})) as fake:
            broken(fake.bank.create_account_batch, "acc-1", entries)
    with Fake(Answer(body={"results": [a]}), Answer(body={"results": [a]})) as fake:
        broken(fake.bank.create_batch, [BatchEntry("acc-9", "a", "acc-2", 100, "GBP", str(day(7)))])
        broken(fake.bank.create_account_batch, "acc-9", [entry("a")])
    # Nobody knows the key of an entry that cannot be read.
    unnamed = {"statusCode": 422, "problem": problem(422, "x")}
    with Fake(Answer(body={"results": [a, unnamed]})) as fake:
        equal([one.status_code for one in fake.bank.create_account_batch("acc-1", entries)], [201, 422])
    # Results of other entries in a repetition are ignored, and the results of the first request stay.
    busy = rejected("b", 503, "throttled", retryAfterSeconds=1)
    with Fake(Answer(body={"results": [a, busy]}), Answer(body={"results": [a]})) as fake:
        equal([one.status_code for one in fake.bank.create_account_batch("acc-1", entries)], [201, 503])
        equal([keys(seen.body) for seen in fake.seen], [["a", "b"], ["b"]])


@check("cursor-stuck")
def cursor_stuck() -> None:
    page = Answer(body={"payments": [PAYMENT], "nextCursor": "same"})
    with Fake(page, page, page) as fake:
        broken(list, fake.bank.list("acc-1"))
        equal(len(fake.seen), 2)
    for has_more in (True, False):
        with Fake(Answer(body={"events": [], "nextCursor": "1.2.0", "hasMore": has_more})) as fake:
            if has_more:
                broken(fake.bank.events, "1.2.0")
            else:
                equal(fake.bank.events("1.2.0").next_cursor, "1.2.0")


@check("slow-body")
def slow_body() -> None:
    with Fake(Answer(201, slow=True), attempts=1, timeout=35.0) as fake:
        error = error_of(fake.bank.create, "acc-1", "key-1", order())
        equal(type(error).__name__, "NoAnswer")
        assert error.detail.endswith("no whole answer within 35 seconds"), error.detail
        equal(len(fake.seen), 1)
