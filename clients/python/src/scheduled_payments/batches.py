"""Sends a batch, and those of its entries again that the bank had no capacity for."""

import re
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TypeVar

from .answers import seconds
from .errors import BankError, GatewayError
from .generated.models import AccountBatchEntry, BatchEntry, EntryCreated, EntryProblem
from .generated.types import Unset
from .retries import Retries

Entry = TypeVar("Entry", BatchEntry, AccountBatchEntry)
Result = EntryCreated | EntryProblem

THROTTLED = 503
# The mark for the rest of a name that is too long.
CUT = "\N{HORIZONTAL ELLIPSIS}"


def send_batch(
    send: Callable[[list[Entry]], Sequence[Result]],
    entries: Sequence[Entry],
    retries: Retries,
    account: str | None = None,
) -> list[Result]:
    """Returns a result for each entry, in their order.

    An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
    or if the request that repeats it fails: the results of the other entries must not be lost.
    """
    results = [*checked(send(list(entries)), entries, account)]
    tries = retries.begin()
    while places := [place for place, result in enumerate(results) if result.status_code == THROTTLED]:
        if not tries.pause(max(map(demanded, (results[place] for place in places)))):
            break
        try:
            again = [entries[place] for place in places]
            repeated = checked(send(again), again, account)
        except BankError:
            break
        for place, result in zip(places, repeated, strict=True):
            results[place] = at_place(result, place)
    return results


def checked(results: Sequence[Result], entries: Sequence[Entry], account: str | None) -> Sequence[Result]:
    """Returns the results if there is one for each entry, which names the same account and key as the entry."""
    accounts = [account if isinstance(entry, AccountBatchEntry) else entry.account_id for entry in entries]
    fits = len(results) == len(entries) and all(
        is_same(result.account_id, account) and is_same(result.idempotency_key, entry.idempotency_key)
        for result, entry, account in zip(results, entries, accounts, strict=True)
    )
    if not fits:
        raise GatewayError("The results are not those of the entries that were sent.", HTTPStatus.OK)
    return results


def is_same(named: str | Unset, sent: str | None) -> bool:
    """Returns whether a result names what was sent. The bank cuts long names, and names nothing unreadable."""
    if isinstance(named, Unset) or sent is None:
        return True
    return named == sent or (named.endswith(CUT) and sent.startswith(named.removesuffix(CUT)))


def demanded(result: Result) -> float:
    """Returns how many seconds to wait before an entry is sent again; 0 if it does not say."""
    return (isinstance(result, EntryProblem) and seconds(result.problem.retry_after_seconds)) or 0


def at_place(result: Result, place: int) -> Result:
    """Returns a result whose pointers begin with the entry's place in the caller's batch."""
    if isinstance(result, EntryProblem) and not isinstance(result.problem.errors, Unset):
        for fault in result.problem.errors:
            fault.pointer = re.sub(r"^/payments/\d+", f"/payments/{place}", str(fault.pointer))
    return result
