"""Checks of single payments at the running bank."""

import datetime
import json
import uuid
from typing import Any

from scheduled_payments import UNSET, Bank

from .suite import check, equal
from .world import BANK, LARGEST, day, order, problem_of, raw_payment, type_error_of, without_data

# Every kind of JSON, among them integers that no double holds.
EVERY_KIND: Any = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    10**30,
    0.1,
    -1.5e-7,
    "",
    'a"\\\n/',
    [],
    {},
    [[{"b": [1]}]],
]


@check("create-and-get")
def create_and_get() -> None:
    wanted = order(data={"note": "rent"})
    created = BANK.create("py-get", "get-1", wanted)
    payment = BANK.get("py-get", created.payment.payment_id)
    equal(without_data(payment), created.payment)
    equal(created.replayed, False)
    equal((payment.account_id, payment.payee_account_id, payment.currency), ("py-get", "acc-2", "GBP"))
    equal((payment.amount_minor, payment.scheduled_for, payment.due_date), (12050, str(day(7)), day(7)))
    equal((payment.status, payment.version, payment.data), ("SCHEDULED", 1, {"note": "rent"}))
    equal([(step.status, step.by.kind) for step in payment.trail], [("SCHEDULED", "client")])


@check("time-with-offset")
def time_with_offset() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    time = datetime.datetime.combine(day(7), datetime.time(9, 30), zone)
    payment = BANK.create("py-time", "time-1", order(scheduled_for=time.isoformat())).payment
    equal(payment.scheduled_for, time.isoformat())
    equal(payment.due_at, time)


@check("replay")
def replay() -> None:
    first = BANK.create("py-replay", "replay-1", order())
    second = BANK.create("py-replay", "replay-1", order())
    equal(second.payment, first.payment)
    equal((first.replayed, second.replayed), (False, True))


@check("key-reused")
def key_reused() -> None:
    BANK.create("py-reuse", "reuse-1", order())
    error = problem_of(BANK.create, "py-reuse", "reuse-1", order(amount_minor=1, currency="EUR"))
    equal((error.status, error.kind), (422, "idempotency-key-reused"))
    equal(error.fields, ["amountMinor", "currency"])


@check("date-rule")
def date_rule() -> None:
    [gbp] = [calendar for calendar in BANK.calendars() if calendar.currencies == ["GBP"]]
    equal(gbp.closed, UNSET)
    closed = BANK.calendar(gbp.calendar_id).closed
    assert closed
    holiday = next(date.date for date in closed if date.date > day(1))
    payment = BANK.create("py-rule", "rule-1", order(scheduled_for=str(holiday), date_rule="following")).payment
    equal((payment.date_rule, payment.move_reason, payment.scheduled_for), ("following", "holiday", str(holiday)))
    assert payment.due_date > holiday
    error = problem_of(BANK.create, "py-rule", "rule-2", order(scheduled_for=str(holiday), date_rule="refuse"))
    equal((error.status, error.kind), (422, "date-closed"))
    error = problem_of(BANK.calendar, "X")
    equal((error.status, error.kind), (404, "no-such-calendar"))


@check("largest-amount")
def largest_amount() -> None:
    created = BANK.create("py-large", "large-1", order(amount_minor=LARGEST)).payment
    equal(created.amount_minor, 9007199254740991)
    equal(BANK.get("py-large", created.payment_id).amount_minor, 9007199254740991)
    assert '"amountMinor":9007199254740991,' in raw_payment("py-large", created.payment_id)


@check("amount-too-large")
def amount_too_large() -> None:
    error = problem_of(BANK.create, "py-large", "large-2", order(amount_minor=LARGEST + 1))
    equal((error.status, error.kind, error.field), (422, "invalid-amount", "amountMinor"))


@check("all-faults")
def all_faults() -> None:
    wrong = order(payee_account_id="..", amount_minor=0, currency="gbp")
    error = problem_of(BANK.create, "py-faults", "faults-1", wrong)
    equal((error.kind, error.field), ("invalid-payee", "payeeAccountId"))
    assert "isoformat" in type_error_of(BANK.create, "py-faults", "faults-2", order(scheduled_for=day(7)))
    found = [(fault.pointer, fault.type.rpartition(":")[2]) for fault in error.errors]
    places = [
        ("/payeeAccountId", "invalid-payee"),
        ("/amountMinor", "invalid-amount"),
        ("/currency", "invalid-currency"),
    ]
    equal(found, places)
    equal(error.errors[0].detail, error.detail)


@check("cancel-twice")
def cancel_twice() -> None:
    payment = BANK.create("py-cancel", "cancel-1", order()).payment
    cancelled = BANK.cancel("py-cancel", payment.payment_id)
    equal((cancelled.status, cancelled.version), ("CANCELLED", 2))
    equal(BANK.cancel("py-cancel", payment.payment_id), cancelled)


@check("cancel-nothing")
def cancel_nothing() -> None:
    nothing = uuid.UUID(int=1)
    for call in (BANK.cancel, BANK.get):
        error = problem_of(call, "py-cancel", nothing)
        equal((error.status, error.kind), (404, "no-such-payment"))


@check("amend")
def amend() -> None:
    first = BANK.create("py-amend", "amend-1", order(reference="RENT", data={"note": "rent"})).payment
    wanted = order(amount_minor=13000, scheduled_for=str(day(9)), data={"note": "raised"})
    amended = BANK.amend("py-amend", first.payment_id, "raise-1", wanted, version=first.version)
    payment = BANK.get("py-amend", first.payment_id)
    equal((without_data(payment), amended.replayed), (amended.payment, False))
    equal((payment.payment_id, payment.status, payment.version), (first.payment_id, "SCHEDULED", 2))
    equal((payment.amount_minor, payment.due_date, payment.reference), (13000, day(9), UNSET))
    equal(payment.data, {"note": "raised"})
    versions = BANK.versions("py-amend", first.payment_id)
    equal([(it.version, it.amount_minor, it.due_date) for it in versions], [(1, 12050, day(7)), (2, 13000, day(9))])
    equal([it.changed_fields for it in versions], [[], ["amountMinor", "scheduledFor", "reference", "data"]])
    equal([it.data for it in versions], [UNSET, UNSET])
    with_data = BANK.versions("py-amend", first.payment_id, with_data=True)
    equal([it.data for it in with_data], [{"note": "rent"}, {"note": "raised"}])


@check("amend-replay")
def amend_replay() -> None:
    payment = BANK.create("py-amend", "replay-1", order()).payment
    first = BANK.amend("py-amend", payment.payment_id, "raise-1", order(amount_minor=13000), version=1)
    second = BANK.amend("py-amend", payment.payment_id, "raise-1", order(amount_minor=13000), version=1)
    equal(second.payment, first.payment)
    equal((first.replayed, second.replayed), (False, True))
    other = order(amount_minor=14000)
    error = problem_of(BANK.amend, "py-amend", payment.payment_id, "raise-1", other, version=2)
    equal((error.status, error.kind, error.fields), (422, "idempotency-key-reused", ["amountMinor"]))


@check("amend-too-late")
def amend_too_late() -> None:
    payment = BANK.create("py-amend", "late-1", order()).payment
    BANK.amend("py-amend", payment.payment_id, "raise-1", order(amount_minor=13000), version=1)
    other = order(amount_minor=14000)
    error = problem_of(BANK.amend, "py-amend", payment.payment_id, "raise-2", other, version=1)
    equal((error.status, error.kind, error.current_version), (412, "version-changed", 2))
    BANK.cancel("py-amend", payment.payment_id)
    error = problem_of(BANK.amend, "py-amend", payment.payment_id, "raise-3", other, version=3)
    equal((error.status, error.kind, error.current_version), (409, "not-amendable", 3))


@check("data-every-kind")
def data_every_kind() -> None:
    payment = BANK.create("py-data", "data-1", order(data=EVERY_KIND)).payment
    got = BANK.get("py-data", payment.payment_id).data
    # Texts of both, because 1 and True and 1.0 are equal.
    equal(json.dumps(got), json.dumps(EVERY_KIND))
    sent = json.dumps(EVERY_KIND, ensure_ascii=False, separators=(",", ":"))
    assert f'"data":{sent}' in raw_payment("py-data", payment.payment_id)


@check("data-null")
def data_null() -> None:
    null = BANK.create("py-data", "null-1", order(data=None)).payment
    absent = BANK.create("py-data", "absent-1", order()).payment
    assert BANK.get("py-data", null.payment_id).data is None
    assert BANK.get("py-data", absent.payment_id).data is UNSET
    assert '"data":null' in raw_payment("py-data", null.payment_id)


@check("non-ascii-data")
def non_ascii_data() -> None:
    data = {"Müller & Söhne": "家賃 – аренда – إيجار – \U0001f3e0\u2028"}
    payment = BANK.create("py-data", "script-1", order(data=data)).payment
    equal(BANK.get("py-data", payment.payment_id).data, data)


@check("odd-ids")
def odd_ids() -> None:
    account, key = "...-_py.Odd_", "!\"#$%&'()*+-./:;<=>?@[\\]^_`{|}~"
    payment = BANK.create(account, key, order(payee_account_id="_.-")).payment
    equal((payment.account_id, payment.payee_account_id), (account, "_.-"))
    found = BANK.find_by_key(account, key)
    assert found is not None
    equal(found.payment_id, payment.payment_id)
    equal(BANK.get(account, payment.payment_id), payment)
    in_quotes = BANK.create(account, '"a\\"b"', order()).payment
    equal(BANK.find_by_key(account, '"a\\"b"'), in_quotes)


@check("dots-refused")
def dots_refused() -> None:
    # Nothing listens there: a request would be an error of another kind.
    nowhere = Bank("http://127.0.0.1:9")
    for account in ("", ".", ".."):
        try:
            nowhere.get(account, "x")
        except ValueError:
            continue
        raise AssertionError(f"{account!r} is accepted")


@check("request-id")
def request_id() -> None:
    error = problem_of(BANK.get, "py-get", uuid.UUID(int=1), request_id="checkout-7f3a")
    equal(error.request_id, "checkout-7f3a")
    own = problem_of(BANK.get, "py-get", uuid.UUID(int=1)).request_id
    assert own and own != "checkout-7f3a"


@check("unknown-parameter")
def unknown_parameter() -> None:
    error = problem_of(BANK.generated.get_httpx_client().get, "/counts", params={"date": "2090-06-15"})
    equal((error.status, error.kind, error.field), (400, "invalid-parameter", "date"))
