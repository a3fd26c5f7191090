"""Checks of numbers that only a bank with many, or large, payments has."""

from .batches import entry
from .fake import PAYMENT, Answer, Fake, problem
from .suite import check, equal
from .world import day, order, problem_of

NINES = "9" * 38


@check("sum-of-38-digits")
def sum_of_38_digits() -> None:
    none = dict.fromkeys(["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"], 0)
    texts = dict.fromkeys(none, "0") | {"PROCESSED": NINES, "FAILED": f"-{NINES}"}
    date = day(0)
    one = {"date": date.isoformat(), "byStatus": none, "total": 0, "archived": 0, "unparsed": 0, "sums": {"GBP": texts}}
    with Fake(Answer(body={"from": one["date"], "to": one["date"], "counts": [one]})) as fake:
        sums = fake.bank.counts(date, date)[0].sums["GBP"]
        equal(sums["PROCESSED"], 99999999999999999999999999999999999999)
        equal(sums["FAILED"], -99999999999999999999999999999999999999)


@check("largest-read")
def largest_read() -> None:
    largest = {**PAYMENT, "amountMinor": 9007199254740991}
    with Fake(Answer(body=largest), Answer(body={"payments": [largest], "nextCursor": None})) as fake:
        equal(fake.bank.get("acc-1", PAYMENT["paymentId"]).amount_minor, 9007199254740991)
        equal([payment.amount_minor for payment in fake.bank.due(day(0))], [9007199254740991])


@check("new-members")
def new_members() -> None:
    unknown = problem(409, "not-thought-of-yet", hint="new")
    results = [{"statusCode": 422, "accountId": "acc-1", "idempotencyKey": "k", "problem": unknown | {"status": 422}}]
    with Fake(Answer(201, PAYMENT | {"mood": "good"}), Answer(409, unknown), Answer(body={"results": results})) as fake:
        equal(fake.bank.create("acc-1", "k", order()).payment.amount_minor, 12050)
        equal(problem_of(fake.bank.create, "acc-1", "k", order()).kind, "not-thought-of-yet")
        equal([result.status_code for result in fake.bank.create_account_batch("acc-1", [entry("k")])], [422])


@check("unknown-values")
def unknown_values() -> None:
    trail = [*PAYMENT["trail"], {"status": "DISPUTED", "at": "2090-06-15T09:00:00Z", "by": {"kind": "court"}}]
    payment = PAYMENT | {"status": "DISPUTED", "moveReason": "strike", "failureCode": "ZZ99", "trail": trail}
    rejected = {"statusCode": 409, "problem": problem(409, "not-thought-of-yet")}
    event = {
        "v": 1,
        "id": "1",
        "type": "payment.disputed",
        "at": "2090-06-15T09:00:00Z",
        "epoch": 1,
        "status": "DISPUTED",
    }
    page = {"events": [event], "nextCursor": "1.2.0", "hasMore": False}
    with Fake(Answer(body=payment), Answer(body={"results": [rejected]}), Answer(body=page)) as fake:
        found = fake.bank.get("acc-1", PAYMENT["paymentId"])
        equal((found.status, found.move_reason, found.trail[1].by.kind), ("DISPUTED", "strike", "court"))
        equal(found.failure_code, "ZZ99")
        equal([result.status_code for result in fake.bank.create_account_batch("acc-1", [entry("k")])], [409])
        [read] = fake.bank.events().events
        equal(read.type_, "payment.disputed")
        # Absent fields are not printed.
        at = f"at={read.at!r}"
        equal(repr(read), f"Event(id='1', type_='payment.disputed', {at}, epoch=1, v=1, status='DISPUTED')")
        equal((repr(read.reference), repr(found).count("UNSET")), ("UNSET", 0))
