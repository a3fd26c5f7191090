"""A list of all pages."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Generic, Protocol, TypeVar

from .errors import GatewayError
from .generated.models import Unreadable
from .generated.types import UNSET, Unset

T = TypeVar("T")


class Page(Protocol[T]):
    """A page of payments, as the generated code has it."""

    @property
    def payments(self) -> list[T]: ...

    @property
    def next_cursor(self) -> str | None: ...

    @property
    def unreadable(self) -> Unreadable | Unset: ...


class Pages(Generic[T]):
    """The payments of a list, read page by page while you iterate.

    `unreadable` counts those that the bank cannot read, and `unreadable_ids` has the ids that it knows: report them.
    """

    def __init__(self, read: Callable[[str | Unset], Page[T]]) -> None:
        self._read = read
        self.unreadable = 0
        self.unreadable_ids: list[str] = []

    def __iter__(self) -> Iterator[T]:
        self.unreadable, self.unreadable_ids = 0, []
        cursor: str | Unset | None = UNSET
        while cursor is not None:
            page = self._read(cursor)
            check_moves(cursor, page.next_cursor)
            if not isinstance(page.unreadable, Unset):
                self.unreadable += page.unreadable.count
                self.unreadable_ids += [str(payment) for payment in page.unreadable.payment_ids]
            yield from page.payments
            cursor = page.next_cursor


def check_moves(cursor: str | Unset | None, following: str | None) -> None:
    """Raises a GatewayError if a page says that it follows itself: whoever reads on would do so for ever."""
    if following is not None and following == cursor:
        raise GatewayError(f"The page at the cursor {cursor!r} has the same cursor as its next one.", HTTPStatus.OK)
