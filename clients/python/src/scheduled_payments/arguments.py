"""Reads arguments of callers, and names what they should have been."""

import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from .generated.types import UNSET, Unset

T = TypeVar("T")


class Scheduled(Protocol):
    """An order, or an entry of a batch."""

    scheduled_for: str


S = TypeVar("S", bound=Scheduled)


def given(value: T | None) -> T | Unset:
    """Returns a value, or what the generated code leaves out."""
    return UNSET if value is None else value


def given_date(value: datetime.date | str | None) -> datetime.date | Unset:
    """Returns a date, or what the generated code leaves out."""
    return UNSET if value is None else as_date(value)


def as_date(value: datetime.date | str) -> datetime.date:
    """Returns a date, also one that is given as a text."""
    if isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise TypeError(f"{value!r} must be a datetime.date, or a text such as '2026-12-30'")
    return value


def checked(order: S) -> S:
    """Returns an order whose `scheduled_for` is a text, as the bank returns it."""
    value: Any = order.scheduled_for
    if not isinstance(value, str):
        raise TypeError(f"scheduled_for must be a text such as '2026-12-30', not {value!r}; use isoformat()")
    return order


def key_header(key: str) -> str:
    """Returns the header that sends a key. One that begins with a double quote is sent in quotes."""
    if not key.startswith('"'):
        return key
    return '"' + key.replace("\\", r"\\").replace('"', r"\"") + '"'


def segment(id: str | UUID) -> str:
    """Returns an id that can be a segment of a path. Programs between would remove dots, and so change the request."""
    if (text := str(id)) in ("", ".", ".."):
        raise ValueError(f"an id must not be {text!r}")
    return text
