"""Writes the calendars T2.txt, FED.txt and GB.txt beside this file.

Needs Python 3.11 and: pip install holidays==0.109

T2 follows the ECB's rule of 14 December 2000, with Easter computed here. FED and GB come from the package `holidays` (MIT):
its financial calendar XFED, and its country GB with the subdivision ENG. Its country US is not used: it closes Fridays before
a holiday that falls on a Saturday, on which the Federal Reserve Banks are open.

Change `MADE` when you run it, and `LAST` to cover more years (and T2's `PUBLISHED` with it, because T2 follows a rule). Change
`PUBLISHED` of the others when the sources below publish a further year, and then the lists in `published/`. A holiday that is
announced goes into `ANNOUNCED`, and if its date is within the list in `published/`, there too.
"""

import datetime
import pathlib

import holidays

VERSION = "0.109"
MADE = "2026-11-24"
FIRST, LAST = 2026, 2035

# Until when the calendar's owner has published its closed dates. Later ones are projected by the same rules.
PUBLISHED = {"T2": "2035-12-31", "FED": "2030-12-31", "GB": "2027-12-31"}

# One-off closed dates that were announced, by calendar: date, name, and where it was announced. Neither a rule nor the package
# has them. A date that the package of a later version has is removed here.
ANNOUNCED: dict[str, list[tuple[str, str, str]]] = {"T2": [], "FED": [], "GB": []}


def easter(year: int) -> datetime.date:
    """The Gregorian Easter Sunday, by the method that the Nautical Almanac prints (Meeus, Astronomical Algorithms, chapter 8)."""
    a, (b, c) = year % 19, divmod(year, 100)
    (d, e), f = divmod(b, 4), (b + 8) // 25
    g = (b - f + 1) // 3
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    l = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * l) // 451
    month, day = divmod(h + l - 7 * m + 114, 31)
    return datetime.date(year, month, day + 1)


def t2(year: int) -> dict[datetime.date, str]:
    sunday = easter(year)
    return {
        datetime.date(year, 1, 1): "New Year's Day",
        sunday - datetime.timedelta(days=2): "Good Friday",
        sunday + datetime.timedelta(days=1): "Easter Monday",
        datetime.date(year, 5, 1): "Labour Day",
        datetime.date(year, 12, 25): "Christmas Day",
        datetime.date(year, 12, 26): "26 December",
    }


YEARS = range(FIRST, LAST + 1)
MIT = "MIT"
CALENDARS = {
    "T2": (
        "T2, the euro's real-time gross settlement system",
        "Europe/Berlin",
        "the ECB's rule of 14 December 2000, www.ecb.europa.eu/press/pr/date/2000/html/pr001214_4.en.html; it holds until further notice",
        "none needed: computed",
        {date: name for year in YEARS for date, name in t2(year).items()},
    ),
    "FED": (
        "Federal Reserve Banks",
        "America/New_York",
        f"PyPI holidays {VERSION}, XFED; published until 2030 at www.federalreserve.gov/aboutthefed/k8.htm",
        MIT,
        dict(holidays.financial_holidays("XFED", years=YEARS)),
    ),
    "GB": (
        "Banks in England and Wales",
        "Europe/London",
        f"PyPI holidays {VERSION}, GB-ENG; published until 2027 at www.gov.uk/bank-holidays",
        MIT,
        dict(holidays.country_holidays("GB", subdiv="ENG", years=YEARS)),
    ),
}


def announced(id: str, known: dict[datetime.date, str]) -> dict[datetime.date, str]:
    found: dict[datetime.date, str] = {}
    for text, name, _ in ANNOUNCED[id]:
        date = datetime.date.fromisoformat(text)
        if date in known or date in found:
            raise SystemExit(f"{id} is closed on {date} without the line of ANNOUNCED; remove the line")
        if date.weekday() >= 5 or date.year not in YEARS:
            raise SystemExit(f"ANNOUNCED has {date} for {id}, which is a weekend or not of {FIRST} to {LAST}; correct the date")
        found[date] = name
    return found


def text(id: str) -> str:
    name, zone, source, licence, dates = CALENDARS[id]
    source = "; ".join([source] + [f"{date}: {where}" for date, _, where in ANNOUNCED[id]])
    dates = dates | announced(id, dates)
    header = {
        "calendar": id, "name": name, "zone": zone, "source": source, "licence": licence, "made": MADE,
        "first": f"{FIRST}-01-01", "published": PUBLISHED[id], "covered": f"{LAST}-12-31",
    }
    # Weekends are closed anyway.
    closed = sorted((date, name) for date, name in dates.items() if date.weekday() < 5)
    lines = [f"{field}: {value}" for field, value in header.items()]
    return "\n".join(lines + [""] + [f"{date} {name}" for date, name in closed]) + "\n"


def main() -> None:
    if holidays.__version__ != VERSION:
        raise SystemExit(f"holidays is {holidays.__version__}, not {VERSION}; run: pip install holidays=={VERSION}")
    ecb = set(holidays.financial_holidays("XECB", years=YEARS))
    if ecb != set(CALENDARS["T2"][4]):
        raise SystemExit("T2 by its rule differs from the package's XECB; find out which is wrong")
    for id in CALENDARS:
        (pathlib.Path(__file__).parent / f"{id}.txt").write_text(text(id), encoding="utf-8")


if __name__ == "__main__":
    main()
