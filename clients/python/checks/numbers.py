"""Checks of numbers that only a bank with many, or large, payments has."""

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
    with Fake(Answer(body={"counts": [one]})) as fake:
        sums = fake.bank.counts(date, date)[0].sums["GBP"]
        equal(sums["PROCESSED"], 99999999999999999999999999999999999999)
        equal(sums["FAILED"], -99999999999999999999999999999999999999)


@check("largest-amount")
def largest_amount() -> None:
    largest = {**PAYMENT, "amountMinor": 9007199254740991}
    with Fake(Answer(body=largest), Answer(body={"payments": [largest], "nextCursor": None})) as fake:
        equal(fake.bank.get("acc-1", PAYMENT["paymentId"]).amount_minor, 9007199254740991)
        equal([payment.amount_minor for payment in fake.bank.due(day(0))], [9007199254740991])


@check("new-members")
def new_members() -> None:
    unknown = problem(409, "not-thought-of-yet", hint="new")
    results = [{"status": 422, "accountId": "acc-1", "idempotencyKey": "k", "problem": unknown | {"status": 422}}]
    with Fake(Answer(201, PAYMENT | {"mood": "good"}), Answer(409, unknown), Answer(body={"results": results})) as fake:
        equal(fake.bank.create("acc-1", "k", order()).payment.amount_minor, 12050)
        equal(problem_of(fake.bank.create, "acc-1", "k", order()).kind, "not-thought-of-yet")
        equal([result.status for result in fake.bank.create_batch([])], [422])
