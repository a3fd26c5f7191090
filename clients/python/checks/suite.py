"""The list of checks, and what runs them."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKS: dict[str, Callable[[], None]] = {}


def check(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a check under its name in checks.txt."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        assert name not in CHECKS, name
        CHECKS[name] = function
        return function

    return register


def equal(found: object, wanted: object) -> None:
    """Fails if the two differ."""
    assert found == wanted and type(found) is type(wanted), f"{found!r} is not {wanted!r}"


def stay_on_this_machine() -> None:
    """Ends any attempt to connect to another machine with an error."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and arguments[1][0] != "127.0.0.1":
            raise PermissionError(f"a check connects to {arguments[1]}")

    sys.addaudithook(hook)


def run() -> int:
    """Runs each check of the list, and writes `ok NAME: SENTENCE` for each that passes. Returns how many failed."""
    stay_on_this_machine()
    lines = Path(os.environ["CHECKS"]).read_text(encoding="utf-8").splitlines()
    sentences = dict(line.split(": ", 1) for line in lines)
    failed = [f"not in the list: {name}" for name in CHECKS if name not in sentences]
    for name, sentence in sentences.items():
        try:
            CHECKS[name]()
            print(f"ok {name}: {sentence}")
        except Exception as error:
            traceback.print_exception(error, limit=-3)
            failed.append(f"not ok {name}: {sentence}")
    print(*failed, sep="\n", end="\n" if failed else "")
    return len(failed)
