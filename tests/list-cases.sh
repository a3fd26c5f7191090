#!/usr/bin/env bash
# Runs the crash tests, and writes tests/cases.txt: a line for each harness and fate, with the numbers of the calls that met it.
set -euo pipefail
cd "$(dirname "$0")/.."

noted=$(mktemp)
trap 'rm -f "$noted"' EXIT
CRASH_CASES=$noted cargo test --package payments-tests --test faults --test journeys --locked

# Calls in a row become a range.
fold='
function range() { return last > first ? first "-" last : first }
{ key = $1 " " $2 }
key == before && $3 == last + 1 { last = $3; next }
NR > 1 { printf "%s%s", range(), (key == before ? "," : "\n") }
key != before { printf "%s ", key; before = key }
{ first = last = $3 }
END { print range() }'
{
    echo '# Written by `just cases`: a harness of the crash tests, the fate of a call, and the numbers of the calls that met it.'
    LC_ALL=C sort --unique --field-separator=$'\t' --key=1,1 --key=2,2 --key=3,3n "$noted" | awk -F'\t' "$fold"
} >tests/cases.txt
echo "tests/cases.txt: $(sort --unique "$noted" | wc -l) cases"
