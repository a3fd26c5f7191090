"""The running bank, and what the checks create there."""

import datetime
import os
import urllib.request
from typing import Any

import attrs

from scheduled_payments import UNSET, Bank, BankError, Payment, PaymentOrder, ProblemError, Retries

URL = os.environ["BANK_URL"]
TOKEN_URL = f"{URL}/oauth2/token"
TOKEN = os.environ["BANK_TOKEN"]
TODAY = datetime.date.fromisoformat(os.environ["BANK_TODAY"])
# A settled payment of acc-1, the only one of today: 350 pence.
SETTLED_KEY = os.environ["BANK_SETTLED_KEY"]
TRANSACTION = os.environ["BANK_TRANSACTION"]
# No check needs a pause at the running bank.
BANK = Bank(URL, TOKEN, retries=Retries(attempts=1))
# Only what is exactly this is meant.
LARGEST = 9007199254740991


def day(number: int) -> datetime.date:
    """Returns a date so many days from today."""
    return TODAY + datetime.timedelta(days=number)


def order(**changes: Any) -> PaymentOrder:
    """Returns an order of 120.50 pounds in a week, with changes."""
    wanted: dict[str, Any] = {
        "payee_account_id": "acc-2",
        "amount_minor": 12050,
        "currency": "GBP",
        "scheduled_for": str(day(7)),
    }
    return PaymentOrder(**(wanted | changes))


def without_data(payment: Payment) -> Payment:
    """Returns a payment as the answers have it that include no data."""
    return attrs.evolve(payment, data=UNSET)


def raw_payment(account: str, payment_id: object) -> str:
    """Returns the text of a payment, as the bank sends it."""
    request = urllib.request.Request(f"{URL}/accounts/{account}/payments/{payment_id}")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as response:
        text: str = response.read().decode()
    return text


def error_of(call: Any, *arguments: Any, **named: Any) -> BankError:
    """Returns the error that a call raises."""
    try:
        call(*arguments, **named)
    except BankError as error:
        return error
    raise AssertionError("no error")


def problem_of(call: Any, *arguments: Any, **named: Any) -> ProblemError:
    """Returns the problem that a call raises."""
    error = error_of(call, *arguments, **named)
    assert isinstance(error, ProblemError), repr(error)
    return error


def type_error_of(call: Any, *arguments: Any) -> str:
    """Returns the text of the TypeError that a call raises."""
    try:
        call(*arguments)
    except TypeError as error:
        return str(error)
    raise AssertionError("no error")
