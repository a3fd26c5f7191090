"""Retries of requests, and the waits before them."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from .errors import BankError, NoAnswer

# The statuses that a later attempt may not have. An internal error is different: it is tried once more only.
PASSING = (429, 503, 504)
INTERNAL = 500
# Each pause is up to a quarter longer than it has to be, so that clients do not come back at the same moment.
JITTER = 0.25


@dataclass(frozen=True)
class Retries:
    """The most tries of a request, and their longest time. Pauses double, and are at least what the answer demands."""

    attempts: int = 6
    # No attempt begins later than this after the first.
    total_seconds: float = 60.0
    # The first pause, if the answer demands none.
    first_seconds: float = 0.5
    wait: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random

    def begin(self) -> "Tries":
        """Begins to count the attempts of one request."""
        return Tries(self)


class Tries:
    """The attempts of one request."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._end = retries.clock() + retries.total_seconds
        self._failed = 0
        self._internal = 0

    def again(self, error: BankError) -> bool:
        """Waits, if the request that had this error is to be sent again. Returns whether it is."""
        self._internal += error.status == INTERNAL
        passing = isinstance(error, NoAnswer) or error.status in PASSING
        return (passing or (error.status == INTERNAL and self._internal == 1)) and self.pause(error.retry_after)

    def pause(self, demanded: float | None) -> bool:
        """Waits before the next attempt. Returns False, at once, if none is left."""
        self._failed += 1
        doubled = (demanded or self._retries.first_seconds) * 2 ** (self._failed - 1)
        pause = doubled * (1 + JITTER * self._retries.random())
        if self._failed >= self._retries.attempts or self._retries.clock() + pause > self._end:
            return False
        self._retries.wait(pause)
        return True
