"""Checks of lists and counts at the running bank."""

import datetime

from scheduled_payments import Payment

from .fake import PAYMENT, Answer, Fake
from .suite import check, equal
from .world import BANK, SETTLED_KEY, TODAY, TRANSACTION, day, order, problem_of, type_error_of, without_data


def five(account: str) -> list[Payment]:
    """Returns five payments of an account, each due a day later than the one before."""
    return [BANK.create(account, f"five-{n}", order(scheduled_for=str(day(10 + n)))).payment for n in range(5)]


@check("pages-ascending")
def pages_ascending() -> None:
    equal(list(BANK.list("py-pages", page_size=2)), [])
    created = five("py-pages")
    equal(list(BANK.list("py-pages", page_size=2)), created)


@check("pages-descending")
def pages_descending() -> None:
    created = five("py-back")
    equal(list(BANK.list("py-back", page_size=2, order="desc")), created[::-1])


@check("date-range")
def date_range() -> None:
    created = five("py-range")
    equal(list(BANK.list("py-range", from_=day(11), to=day(13))), created[1:4])
    equal(list(BANK.list("py-range", from_=str(day(11)), to=str(day(13)))), created[1:4])
    for wrong in (20261230, datetime.datetime.now()):
        assert "2026-12-30" in type_error_of(BANK.due, wrong)
        assert "2026-12-30" in type_error_of(BANK.counts, wrong)


@check("several-statuses")
def several_statuses() -> None:
    created = five("py-status")
    cancelled = BANK.cancel("py-status", created[1].payment_id)
    both = list(BANK.list("py-status", status=["CANCELLED", "SCHEDULED"]))
    equal(both, [created[0], cancelled, *created[2:]])
    equal(list(BANK.list("py-status", status=["CANCELLED", "FAILED"])), [cancelled])


@check("payee-filter")
def payee_filter() -> None:
    five("py-payee")
    other = BANK.create("py-payee", "other-1", order(payee_account_id="acc-9", data=[1])).payment
    found = list(BANK.list("py-payee", payee="acc-9", with_data=True))
    equal([(payment.payment_id, payment.data) for payment in found], [(other.payment_id, [1])])


@check("reference-filter")
def reference_filter() -> None:
    five("py-reference")
    other = BANK.create("py-reference", "other-1", order(reference="INV 2026/117+(a)")).payment
    equal(other.reference, "INV 2026/117+(a)")
    equal(list(BANK.list("py-reference", reference="INV 2026/117+(a)")), [other])


@check("find-by-key")
def find_by_key() -> None:
    created = BANK.create("py-find", "a+key&with=/#?%41", order(data={"a": 1})).payment
    found = BANK.find_by_key("py-find", "a+key&with=/#?%41", with_data=True)
    assert found is not None
    equal((without_data(found), found.data), (created, {"a": 1}))
    equal(BANK.find_by_key("py-find", "a+key&with=/#?%41"), created)


@check("find-by-unknown-key")
def find_by_unknown_key() -> None:
    assert BANK.find_by_key("py-find", "unknown-1") is None


@check("due-by-date")
def due_by_date() -> None:
    settled = BANK.find_by_key("acc-1", SETTLED_KEY)
    assert settled is not None
    found = list(BANK.due(TODAY, status=["PROCESSED", "FAILED"], page_size=1))
    equal([payment.payment_id for payment in found], [settled.payment_id])
    equal((found[0].amount_minor, found[0].settled_at), (350, settled.settled_at))
    equal(list(BANK.due(day(700))), [])


@check("find-by-transaction")
def find_by_transaction() -> None:
    found = BANK.find_by_transaction(TRANSACTION)
    equal([(payment.transaction_id, payment.status) for payment in found], [(TRANSACTION, "PROCESSED")])
    equal(found, [BANK.find_by_key("acc-1", SETTLED_KEY)])
    equal(BANK.find_by_transaction("TX with spaces & more"), [])


@check("counts")
def counts() -> None:
    today, tomorrow = BANK.counts(TODAY, day(1))
    equal((today.date, tomorrow.date), (TODAY, day(1)))
    equal((today.total, today.by_status["PROCESSED"], today.by_status["SCHEDULED"]), (1, 1, 0))
    equal(today.sums["GBP"]["PROCESSED"], 350)
    equal((tomorrow.total, tomorrow.sums), (0, {}))


@check("events")
def events() -> None:
    page = BANK.events(limit=1)
    found = page.events
    while page.has_more:
        page = BANK.events(page.next_cursor)
        found += page.events
    [settled] = [event for event in found if event.transaction_id == TRANSACTION]
    equal((settled.type_, settled.version), ("payment.processed", 3))
    equal((settled.previous_status, settled.status, settled.amount_minor), ("PENDING", "PROCESSED", 350))
    error = problem_of(BANK.events, "9.1.0")
    equal((error.status, error.kind, error.oldest_cursor), (410, "cursor-gone", f"{settled.epoch}.1.0"))


@check("unreadable")
def unreadable() -> None:
    gone = {"count": 2, "paymentIds": [PAYMENT["paymentId"]]}
    first = Answer(body={"payments": [], "nextCursor": "abc", "unreadable": gone})
    last = Answer(body={"payments": [PAYMENT], "nextCursor": None})
    with Fake(first, last) as fake:
        pages = fake.bank.list("acc-1", status=["SCHEDULED"])
        equal(len(list(pages)), 1)
        equal((pages.unreadable, pages.unreadable_ids), (2, [PAYMENT["paymentId"]]))
        assert "cursor=" not in fake.seen[0].path and "cursor=abc" in fake.seen[1].path
