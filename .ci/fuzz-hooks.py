"""Makes generated requests valid where a schema cannot, for .ci/fuzz-api.sh: dates that the API accepts, ranges
in order, ids that exist. Of other requests it changes only what would name another route."""

import datetime
import itertools
import json
import os
import re

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

# Written by .ci/fuzz-api.sh: the account, payments, cursors and transaction that exist.
KNOWN = json.loads(os.environ["FUZZ_KNOWN"])
TODAY = datetime.date.fromisoformat(KNOWN["today"])

# The years that the API accepts.
FIRST, LAST = datetime.date(2000, 1, 1), datetime.date(2099, 12, 31)
DATES = st.dates(FIRST, LAST)
schemathesis.openapi.format("date", DATES.map(str))
schemathesis.openapi.format("date-time", DATES.map(lambda date: f"{date}T09:30:00Z"))

# The maximum length of a range, in days, by operation. The list's is ours: a range only has to be in order.
# Places in any log of events.
LOG_CURSORS = ["now", "1.1.0"]
WIDEST = {"GET /counts": 365, "GET /accounts/{accountId}/payments": 9_000}

numbers = itertools.count()
used_keys = set()
# The versions of payments that were amended, or are no longer as they were created.
versions = {}


def as_date(text):
    return datetime.date.fromisoformat(text)


def ahead(text):
    """Returns a date or a time for which payments can be created, always the same one for the same text, and in its form.

    The pattern also has dates and times that do not exist."""
    fraction, offset = re.fullmatch(r".{10}(?:T.{8}(\.0+)?(Z|[+-].{5}))?", text).groups()
    date = TODAY + datetime.timedelta(days=1 + int(text[:10].replace("-", "")) % 700)
    if offset is None:
        return str(date)
    return f"{date}T09:30:00{fraction or ''}{offset if offset == 'Z' else offset[0] + '09:30'}"


def fresh(account, key):
    """Returns the key, or a similar one if the account has used it."""
    while (account, key) in used_keys:
        key = f"{key[:240]}-{next(numbers)}"
    used_keys.add((account, key))
    return key


def inside(header):
    """Returns the key that a header names: the text inside of double quotes, if it has them."""
    return re.sub(r"\\(.)", r"\1", header[1:-1]) if header and header.startswith('"') else header


def fresh_header(owner, header):
    """Returns the header, or that of a similar key if the owner has used this one."""
    key = fresh(owner, inside(header))
    return json.dumps(key) if header.startswith('"') else key


def settle_order(order, account):
    """Makes a payment valid: a currency that exists, a date ahead, a payee who is not the payer."""
    if order["payeeAccountId"] == account:
        order["payeeAccountId"] = "acc-2" if account != "acc-2" else "acc-1"
    # To JSON Schema 350.0 is an integer, but not to the API, which parses no amount as a float.
    order["amountMinor"] = int(order["amountMinor"])
    order["currency"] = ["GBP", "EUR", "JPY", "KWD"][sum(map(ord, order["currency"])) % 4]
    order["scheduledFor"] = ahead(order["scheduledFor"])
    # A closed date would be rejected.
    if order.get("dateRule") == "refuse":
        order["dateRule"] = "following"


def settle_query(label, query):
    """Makes a query valid: a range in order, a shard that exists, a cursor or a transaction only by itself."""
    if label == "GET /events":
        if "cursor" in query:
            query["cursor"] = LOG_CURSORS[next(numbers) % len(LOG_CURSORS)]
        return
    if "cursor" in query:
        query.clear()
        query["cursor"] = KNOWN["dueCursor" if label == "GET /payments" else "accountCursor"]
        return
    if "idempotencyKey" in query:
        for other in set(query) - {"idempotencyKey", "include"}:
            del query[other]
        return
    if "transactionId" in query:
        asked = KNOWN["transaction"] if next(numbers) % 3 else query["transactionId"]
        query.clear()
        query["transactionId"] = asked
        return
    if label == "GET /payments":
        query.setdefault("dueDate", KNOWN["today"])
        if "shard" in query:
            query["shard"] = int(query["shard"]) % 10
    if label in WIDEST and "to" in query:
        start = as_date(query.get("from", KNOWN["today"]))
        days = as_date(query["to"]).toordinal() % WIDEST[label]
        query["to"] = str(min(start + datetime.timedelta(days=days), LAST))


def settle_endpoint(case, label):
    """Makes a request about a webhook endpoint valid. Only one of the two that there can be is ever deleted."""
    is_of_second = label.startswith("DELETE") or (label.startswith("PUT") and next(numbers) % 2)
    case.path_parameters["endpointId"] = "second" if is_of_second else "fuzz"
    if label.startswith("PUT"):
        case.body["url"] = "http://127.0.0.1:9/hook"
        if "cursor" in case.body:
            case.body["cursor"] = LOG_CURSORS[next(numbers) % len(LOG_CURSORS)]
    elif label.endswith("/replay"):
        case.body["cursor"] = "1.1.0"
    elif label.endswith("/skip"):
        case.body["eventId"] = KNOWN["skipped"]
    elif label.endswith("/rotate"):
        case.body["generation"] = 1


AMENDMENT = "PUT /accounts/{accountId}/payments/{paymentId}"
ACCOUNT_BATCH = "POST /accounts/{accountId}/payment-batches"


def settle_path(label, path, has_cursor):
    """Makes two thirds of the paths name things that exist. A cursor belongs to one account."""
    is_known = next(numbers) % 3
    if "calendarId" in path and is_known:
        path["calendarId"] = ["T2", "FED", "GB"][next(numbers) % 3]
    if "paymentId" in path and is_known:
        path["accountId"] = KNOWN["account"]
        path["paymentId"] = KNOWN["payments"][next(numbers) % len(KNOWN["payments"])]
    elif has_cursor:
        path["accountId"] = KNOWN["account"]


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes a request that is meant to be valid acceptable to the running system."""
    # An encoded question mark would end the path, as on API Gateway, and so name another route.
    for name, value in (case.path_parameters or {}).items():
        case.path_parameters[name] = value.replace("?", "!").replace("%3F", "%21") if isinstance(value, str) else value
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    label = case.operation.label
    has_cursor = "cursor" in (case.query or {})
    if "{endpointId}" in label:
        settle_endpoint(case, label)
    elif case.path_parameters:
        settle_path(label, case.path_parameters, has_cursor)
    if case.query or label == "GET /payments":
        case.query = case.query or {}
        settle_query(label, case.query)
    if label == "POST /accounts/{accountId}/payments":
        account = case.path_parameters["accountId"]
        settle_order(case.body, account)
        case.headers["Idempotency-Key"] = fresh_header(account, case.headers["Idempotency-Key"])
    elif label == AMENDMENT:
        settle_order(case.body, case.path_parameters["accountId"])
        # Each is another amendment: an older one would be a retry with another order.
        case.headers["Idempotency-Key"] = fresh_header(case.path_parameters["paymentId"], case.headers["Idempotency-Key"])
        case.headers["If-Match"] = f'"{versions.get(case.path_parameters["paymentId"], 1)}"'
    elif label == "POST /payment-batches":
        for order in case.body["payments"]:
            settle_order(order, order["accountId"])
            order["idempotencyKey"] = fresh(order["accountId"], order["idempotencyKey"])
    elif label == ACCOUNT_BATCH:
        account = case.path_parameters["accountId"]
        for order in case.body["payments"]:
            if "accountId" in order:
                order["accountId"] = account
            settle_order(order, account)
            order["idempotencyKey"] = fresh(account, order["idempotencyKey"])


@schemathesis.hook
def after_call(context, case, response):
    """Remembers the keys of invalid requests, too: an unknown header or a batch's other entry prevents no payment."""
    if case.operation.label == "POST /accounts/{accountId}/payments" and response.status_code == 201:
        used_keys.add((response.json()["accountId"], inside((case.headers or {}).get("Idempotency-Key"))))
    if case.operation.label == AMENDMENT and response.status_code in (200, 409, 412):
        body = response.json()
        payment = case.path_parameters["paymentId"]
        versions[payment] = body.get("version", body.get("currentVersion", versions.get(payment, 1)))
        used_keys.add((payment, inside((case.headers or {}).get("Idempotency-Key"))))
    if case.operation.label in ("POST /payment-batches", ACCOUNT_BATCH) and response.status_code == 200:
        for result in response.json()["results"]:
            used_keys.add((result.get("accountId"), result.get("idempotencyKey")))


@schemathesis.check
def entries_of_a_batch_are_checked(ctx, response, case):
    """A batch returns 200 whatever its entries are, so this checks each: a valid batch creates all of its
    payments, an invalid one does not."""
    if case.operation.label not in ("POST /payment-batches", ACCOUNT_BATCH) or response.status_code != 200:
        return
    statuses = [result["statusCode"] for result in response.json()["results"]]
    all_created = all(status == 201 for status in statuses)
    if case.meta.generation.mode.is_positive:
        assert all_created, f"A valid batch returned {statuses}"
    elif case.meta.is_negative_at(ParameterLocation.BODY):
        assert not all_created, f"An invalid batch returned {statuses}"
