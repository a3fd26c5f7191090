"""Checks of batches."""

import json
from typing import Any

from scheduled_payments import AccountBatchEntry, BatchEntry, EntryCreated, EntryProblem

from .fake import PAYMENT, Answer, Fake, problem, throttled
from .suite import check, equal
from .world import BANK, day


def entry(key: str, amount: int = 100) -> AccountBatchEntry:
    """Returns an entry of an account's batch."""
    return AccountBatchEntry(key, "acc-2", amount, "GBP", str(day(7)))


def created(key: str) -> dict[str, Any]:
    """Returns the result of an entry that was created."""
    return {"statusCode": 201, "accountId": "acc-1", "idempotencyKey": key, "payment": PAYMENT}


def rejected(key: str, status: int, kind: str, **more: Any) -> dict[str, Any]:
    """Returns the result of an entry that was not."""
    return {"statusCode": status, "accountId": "acc-1", "idempotencyKey": key, "problem": problem(status, kind, **more)}


def keys(body: str) -> list[str]:
    """Returns the keys of a batch that was sent."""
    return [one["idempotencyKey"] for one in json.loads(body)["payments"]]


@check("batch-one-rejected")
def batch_one_rejected() -> None:
    amounts = [("py-batch-1", 100), ("py-batch-2", 0), ("py-batch-1", 300)]
    entries = [BatchEntry(account, f"b-{amount}", "acc-2", amount, "GBP", str(day(7))) for account, amount in amounts]
    first, second, third = BANK.create_batch(entries)
    assert isinstance(first, EntryCreated) and isinstance(second, EntryProblem) and isinstance(third, EntryCreated)
    equal((first.status_code, second.status_code, third.status_code), (201, 422, 201))
    equal((first.payment.amount_minor, third.payment.amount_minor), (100, 300))
    equal((second.account_id, second.idempotency_key), ("py-batch-2", "b-0"))
    assert second.problem.type_.endswith(":invalid-amount") and second.problem.errors
    equal(second.problem.errors[0].pointer, "/payments/1/amountMinor")


@check("account-batch")
def account_batch() -> None:
    results = BANK.create_account_batch("py-batch-3", [entry("a"), entry("b"), entry("a")])
    payments = [result for result in results if isinstance(result, EntryCreated)]
    equal([(result.account_id, result.idempotency_key) for result in payments], [("py-batch-3", key) for key in "aba"])
    equal([bool(result.idempotent_replayed) for result in payments], [False, False, True])
    equal(payments[0].payment, payments[2].payment)


@check("batch-repeats-503")
def batch_repeats_503() -> None:
    busy = [rejected(key, 503, "throttled", retryAfterSeconds=seconds) for key, seconds in (("b", 2), ("d", 3))]
    failed = rejected("c", 500, "internal")
    answers = [[created("a"), busy[0], failed, busy[1]], [created("b"), busy[1]], [created("d")]]
    with Fake(*(Answer(body={"results": results}) for results in answers)) as fake:
        results = fake.bank.create_account_batch("acc-1", [entry(key) for key in "abcd"])
        equal([keys(seen.body) for seen in fake.seen], [list("abcd"), list("bd"), ["d"]])
        equal(
            [(result.idempotency_key, result.status_code) for result in results],
            [("a", 201), ("b", 201), ("c", 500), ("d", 201)],
        )
        equal(fake.pauses, [3.0, 6.0])


@check("batch-pointers")
def batch_pointers() -> None:
    fault = {
        "pointer": "/payments/0/currency",
        "type": "urn:scheduled-payments:problem:x",
        "detail": "It is so.",
    }
    busy = rejected("b", 503, "throttled", retryAfterSeconds=1)
    wrong = rejected("b", 422, "invalid-currency", errors=[fault])
    answers = [[created("a"), busy], [wrong]]
    with Fake(*(Answer(body={"results": results}) for results in answers)) as fake:
        result = fake.bank.create_account_batch("acc-1", [entry("a"), entry("b")])[1]
        assert isinstance(result, EntryProblem) and result.problem.errors
        equal(result.problem.errors[0].pointer, "/payments/1/currency")


@check("batch-keeps-results")
def batch_keeps_results() -> None:
    busy = rejected("b", 503, "throttled", retryAfterSeconds=1)
    first = Answer(body={"results": [created("a"), busy]})
    for later in (Answer(401, {"message": "Unauthorized"}), throttled(100)):
        with Fake(first, later) as fake:
            results = fake.bank.create_account_batch("acc-1", [entry("a"), entry("b")])
            equal([result.status_code for result in results], [201, 503])
            equal(len(fake.seen), 2)
