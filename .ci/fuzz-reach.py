"""Fails if a run of schemathesis sent too few requests, or if no request to some operation succeeded.

Usage: fuzz-reach.py REPORT.NDJSON LEAST
"""

import collections
import json
import sys

report, least = sys.argv[1], int(sys.argv[2])
statuses = collections.defaultdict(collections.Counter)
with open(report, encoding="utf-8") as lines:
    for line in lines:
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for case, interaction in recorder.get("interactions", {}).items():
            if interaction.get("response"):
                value = recorder["cases"][case]["value"]
                statuses[value["method"], value["path"]][interaction["response"]["status_code"]] += 1

# A method that the API does not have is always rejected, on purpose.
operations = {name: counts for name, counts in statuses.items() if set(counts) != {405}}
for (method, path), counts in sorted(operations.items()):
    print(f"{method} {path}:", ", ".join(f"{status} {count} times" for status, count in sorted(counts.items())))
requests = sum(sum(counts.values()) for counts in statuses.values())
print(f"{requests} requests; the minimum is {least}")
barren = [name for name, counts in operations.items() if not any(200 <= status < 300 for status in counts)]
if barren or requests < least:
    sys.exit(f"too few requests, or an operation without a success: {barren}")
