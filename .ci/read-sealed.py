#!/usr/bin/env python3
"""Reads sealed parts with DuckDB and pyarrow: asks each question of docs/sealed.md, and compares counts and sums with the counters.

Usage: .ci/read-sealed.py FOLDER COUNTS, in a Python with the packages of .ci/requirements-sealed.txt. FOLDER has sealed/, and COUNTS is an
answer of GET /counts.
"""

import json
import pathlib
import re
import sys

import duckdb
import pyarrow.dataset

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUESTIONS = 10


def counted(counts):
    """The counts and sums of finished payments by date, status and currency, as the counters have them."""
    found = {}
    for day in counts["counts"]:
        for currency, sums in day["sums"].items():
            for status in ("PROCESSED", "FAILED", "CANCELLED"):
                if int(sums[status]):
                    found[day["date"], status, currency] = int(sums[status])
    return found


def finished(counts):
    """The number of finished payments by date and status."""
    statuses = ("PROCESSED", "FAILED", "CANCELLED")
    days = [(day["date"], status, day["byStatus"][status]) for day in counts["counts"] for status in statuses]
    return {(date, status): number for date, status, number in days if number}


def main():
    folder, counts = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
    files = f"read_parquet('{folder}/sealed/*/*.parquet', hive_partitioning = true)"
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    sums = db.execute(f"SELECT date, status, currency, sum(amount_minor) FROM {files} GROUP BY ALL").fetchall()
    sums = {(str(date), status, currency): int(minor) for date, status, currency, minor in sums}
    assert sums == counted(counts), f"DuckDB sums {sums}, and the counters have {counted(counts)}"
    numbers = db.execute(f"SELECT date, status, count(*) FROM {files} WHERE date = due_date GROUP BY ALL").fetchall()
    numbers = {(str(date), status): number for date, status, number in numbers}
    assert numbers == finished(counts), f"DuckDB counts {numbers}, and the counters have {finished(counts)}"
    table = pyarrow.dataset.dataset(folder / "sealed", partitioning="hive").to_table()
    assert table.num_rows == sum(finished(counts).values()), f"pyarrow reads {table.num_rows} rows"
    assert str(table.schema.field("settled_at").type) == "timestamp[us, tz=UTC]", table.schema
    assert json.loads(table.column("trail")[0].as_py())[0]["status"] == "SCHEDULED"

    page = (ROOT / "docs/sealed.md").read_text()
    columns = re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `")))
    assert sorted(set(table.column_names) - {"date"}) == sorted(columns), "docs/sealed.md lists other columns"
    questions = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(questions) == QUESTIONS, f"{len(questions)} questions"
    for question in questions:
        answer = db.execute(question.replace("FROM sealed", f"FROM {files}")).fetchall()
        print(f"{len(answer)} rows: {' '.join(question.split())}")
    print("Sealed parts are what the counters say, to DuckDB and pyarrow.")


main()
