"""A list of all pages."""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from .generated.models import LeftOut
from .generated.types import UNSET, Unset

T = TypeVar("T")


class Page(Protocol[T]):
    """A page of payments, as the generated code has it."""

    @property
    def payments(self) -> list[T]: ...

    @property
    def next_cursor(self) -> str | None: ...

    @property
    def left_out(self) -> LeftOut | Unset: ...


class Pages(Generic[T]):
    """The payments of a list, read page by page while you iterate.

    `left_out` counts those that the bank cannot read, and `left_out_ids` has the ids that it knows: report them.
    """

    def __init__(self, read: Callable[[str | Unset], Page[T]]) -> None:
        self._read = read
        self.left_out = 0
        self.left_out_ids: list[str] = []

    def __iter__(self) -> Iterator[T]:
        self.left_out, self.left_out_ids = 0, []
        cursor: str | Unset | None = UNSET
        while cursor is not None:
            page = self._read(cursor)
            if not isinstance(page.left_out, Unset):
                self.left_out += page.left_out.count
                self.left_out_ids += [str(payment) for payment in page.left_out.payment_ids]
            yield from page.payments
            cursor = page.next_cursor
