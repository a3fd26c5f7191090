"""Reads answers, and names what is not as openapi.yaml describes it."""

import json
import math
from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

import httpx

from .generated.types import Response

# The errors of reading a malformed answer.
MALFORMED = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


class Model(Protocol):
    """A class of the generated code."""

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self: ...


T = TypeVar("T", bound=Model)


def expect(kind: type[T], response: Response[Any]) -> T:
    """Returns what a success must contain, or raises one of MALFORMED."""
    answer = json.loads(response.content, parse_constant=refuse)
    check_amounts(answer)
    # The description allows two kinds of pages for one request, so the generated code may have read the other.
    return response.parsed if isinstance(response.parsed, kind) else kind.from_dict(answer)


def check_amounts(value: Any) -> None:
    """Raises TypeError for an amount that is not an integer. What is in `data` is the client's own."""
    if isinstance(value, list):
        for item in value:
            check_amounts(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name == "amountMinor" and type(member) is not int:
                raise TypeError(f"an amount is {member!r}")
            if name != "data":
                check_amounts(member)


def from_json(response: httpx.Response) -> Any:
    """Returns the value of an answer, or None if it is not JSON."""
    try:
        return json.loads(response.content, parse_constant=refuse)
    except (RecursionError, ValueError):
        return None


def refuse(constant: str) -> None:
    """Raises an error for NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{constant} is not JSON")


def seconds(value: Any) -> float | None:
    """Returns a number of seconds, also one that is written as a text of digits, or None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
