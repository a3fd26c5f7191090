"""Sends a batch, and those of its entries again that the bank had no capacity for."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from .errors import BankError
from .generated.models import EntryCreated, EntryProblem
from .generated.types import Unset
from .retries import Retries

Entry = TypeVar("Entry")
Result = EntryCreated | EntryProblem

THROTTLED = 503


def send_batch(
    send: Callable[[list[Entry]], Sequence[Result]], entries: Sequence[Entry], retries: Retries
) -> list[Result]:
    """Returns a result for each entry, in their order.

    An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
    or if the request that repeats it fails: the results of the other entries must not be lost.
    """
    results = list(send(list(entries)))
    tries = retries.begin()
    while places := [place for place, result in enumerate(results) if result.status_code == THROTTLED]:
        if not tries.pause(max(map(demanded, (results[place] for place in places)))):
            break
        try:
            repeated = send([entries[place] for place in places])
        except BankError:
            break
        for place, result in zip(places, repeated, strict=True):
            results[place] = at_place(result, place)
    return results


def demanded(result: Result) -> float:
    """Returns how many seconds to wait before an entry is sent again; 0 if it does not say."""
    seconds = result.problem.retry_after_seconds if isinstance(result, EntryProblem) else 0
    return 0 if isinstance(seconds, Unset) else seconds


def at_place(result: Result, place: int) -> Result:
    """Returns a result whose pointers begin with the entry's place in the caller's batch."""
    if isinstance(result, EntryProblem) and not isinstance(result.problem.errors, Unset):
        for fault in result.problem.errors:
            fault.pointer = re.sub(r"^/payments/\d+", f"/payments/{place}", fault.pointer)
    return result
