"""What a schema cannot say of good requests, for .ci/fuzz-api: which dates the bank takes, that a range
has two ends, which ids are there. Only requests that are meant to be good are touched."""

import datetime
import itertools
import json
import os

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

# Written by .ci/fuzz-api: the account, payments, cursors and transaction that it put in.
KNOWN = json.loads(os.environ["FUZZ_KNOWN"])
TODAY = datetime.date.fromisoformat(KNOWN["today"])

# The bank's years, which few of all dates are in.
FIRST, LAST = datetime.date(2000, 1, 1), datetime.date(2099, 12, 31)
DATES = st.dates(FIRST, LAST)
schemathesis.openapi.format("date", DATES.map(str))
schemathesis.openapi.format("date-time", DATES.map(lambda date: f"{date}T09:30:00Z"))

# How far apart the ends of a range may be, in days, by operation.
WIDEST = {"GET /counts": 365, "GET /accounts/{accountId}/payments": 366}

numbers = itertools.count()
used_keys = set()


def as_date(text):
    return datetime.date.fromisoformat(text)


def ahead(text):
    """A day that payments are taken for, and always the same one for the same text."""
    date = as_date(text[:10])
    return TODAY + datetime.timedelta(days=1 + date.toordinal() % 700)


def fresh(account, key):
    """The key, or one like it where the account has used it: two contents under one are refused."""
    while (account, key) in used_keys:
        key = f"{key[:240]}-{next(numbers)}"
    used_keys.add((account, key))
    return key


def settle_order(order, account):
    """A payment that the bank takes: a currency that exists, a date ahead, a payee who is not the
    payer."""
    if order["payeeAccountId"] == account:
        order["payeeAccountId"] = "acc-2" if account != "acc-2" else "acc-1"
    # To JSON Schema 350.0 is an integer, and to the bank it is none: amounts pass through no float.
    order["amountMinor"] = int(order["amountMinor"])
    order["currency"] = ["GBP", "EUR", "JPY", "KWD"][sum(map(ord, order["currency"])) % 4]
    asked = order["scheduledFor"]
    order["scheduledFor"] = f"{ahead(asked)}{asked[10:]}"


def settle_query(label, query):
    """A range with its ends in order, a shard that is there, and a cursor, alone, if any."""
    if "cursor" in query:
        query.clear()
        query["cursor"] = KNOWN["dueCursor" if label == "GET /payments" else "accountCursor"]
        return
    if label == "GET /payments":
        query.setdefault("dueDate", KNOWN["today"])
        if "shard" in query:
            query["shard"] = int(query["shard"]) % 10
    if label in WIDEST and "to" in query:
        start = as_date(query.get("from", KNOWN["today"]))
        days = as_date(query["to"]).toordinal() % WIDEST[label]
        query["to"] = str(min(start + datetime.timedelta(days=days), LAST))


def settle_path(label, path, has_cursor):
    """Two thirds ask for what is there; a cursor is one account's."""
    is_known = next(numbers) % 3
    if "transactionId" in path and is_known:
        path["transactionId"] = KNOWN["transaction"]
    elif "paymentId" in path and is_known:
        path["accountId"] = KNOWN["account"]
        path["paymentId"] = KNOWN["payments"][next(numbers) % len(KNOWN["payments"])]
    elif has_cursor:
        path["accountId"] = KNOWN["account"]


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes a good request one that this bank, with what is in it today, can accept."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    label = case.operation.label
    has_cursor = "cursor" in (case.query or {})
    if case.path_parameters:
        settle_path(label, case.path_parameters, has_cursor)
    if case.query or label == "GET /payments":
        case.query = case.query or {}
        settle_query(label, case.query)
    if label == "POST /accounts/{accountId}/payments":
        account = case.path_parameters["accountId"]
        settle_order(case.body, account)
        case.headers["Idempotency-Key"] = fresh(account, case.headers["Idempotency-Key"])
    elif label == "POST /payment-batches":
        for order in case.body["payments"]:
            settle_order(order, order["accountId"])
            order["idempotencyKey"] = fresh(order["accountId"], order["idempotencyKey"])


@schemathesis.check
def entries_of_a_batch_are_judged(ctx, response, case):
    """A batch is answered with 200 whatever its entries are, so these are looked at one by one: all of a
    good one are taken, and of a bad one not all."""
    if case.operation.label != "POST /payment-batches" or response.status_code != 200:
        return
    statuses = [result["status"] for result in response.json()["results"]]
    is_taken = all(status == 201 for status in statuses)
    if case.meta.generation.mode.is_positive:
        assert is_taken, f"A good batch is answered with {statuses}"
    elif case.meta.is_negative_at(ParameterLocation.BODY):
        assert not is_taken, f"A bad batch is answered with {statuses}"
