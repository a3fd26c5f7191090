#!/usr/bin/env bash
# Sends cargo local thousands of valid and invalid requests that schemathesis generates from openapi.yaml. Fails
# if a response is a server error or is not described, or if a valid request is rejected or an invalid one
# accepted. Tokens are required, as in a deployed stack.
#
# Usage: .ci/fuzz-api.sh [PATH-OF-LOCAL], with schemathesis, openapi-spec-validator and their python3 first on
# PATH, after cargo build --package payments-local. Requests and responses are kept in .tools/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."

local=${1:-target/debug/local}
folder=$PWD/.tools/fuzz
# The minimum number of requests. Fewer mean that the description lost operations, or that generation failed.
least=1750
today=$(TZ=Europe/London date +%F)
soon=$(TZ=Europe/London date -d '+7 days' +%F 2>/dev/null || TZ=Europe/London date -v+7d +%F)

rm -rf "$folder"
mkdir -p "$folder"
export HYPOTHESIS_STORAGE_DIRECTORY=$folder/hypothesis
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# start_local NAME: starts cargo local's sandbox on free ports, with a reports folder of this name: each bank needs its own.
# Its welcome prints URLs, a key and a transaction id.
start_local() {
    : >"$folder/local.log"
    RUST_LOG=error "$local" --sandbox --require-tokens --api-port 0 --dynamodb-port 0 --reports "$folder/reports-of-$1" \
        >"$folder/local.log" 2>&1 &
    for _ in $(seq 100); do
        grep --quiet 'Ctrl-C' "$folder/local.log" && break
        sleep 0.1
    done
    api=$(sed -n 's/^  HTTP API  *\(http:[^ ]*\).*/\1/p' "$folder/local.log")
    coffee=$(sed -n "s/.*Idempotency-Key: \(coffee-[^']*\).*/\1/p" "$folder/local.log")
    transaction=$(sed -n 's,.*transactionId=\([^ '\'']*\).*,\1,p' "$folder/local.log")
    [[ -n "$api" && -n "$coffee" && -n "$transaction" ]] || { cat "$folder/local.log" >&2; return 1; }
    TOKEN=$(curl --silent --show-error --fail "$api/oauth2/token" -d grant_type=client_credentials | value access_token)
    export TOKEN
}

ask() {
    curl --silent --show-error --fail-with-body --oauth2-bearer "$TOKEN" "$@"
}

# create KEY DATE: creates a payment and prints its id.
create() {
    ask "$api/accounts/acc-1/payments" -H 'Content-Type: application/json' -H "Idempotency-Key: $1" -d '{
        "payeeAccountId":"acc-3","amountMinor":350,"currency":"GBP","scheduledFor":"'"$2"'","data":{"n":1}}' |
        value paymentId
}

# found: the payments of the transaction.
found() {
    ask --get "$api/payments" --data-urlencode "transactionId=$transaction"
}

value() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# blocking: the event that the webhook endpoint does not accept; nobody listens there.
blocking() {
    ask "$api/webhook-endpoints/fuzz" |
        python3 -c 'import json, sys; print(json.load(sys.stdin).get("failing", {}).get("eventId", ""))'
}

# fill: creates a payment that is settled, one that is cancelled and some that stay scheduled, and gets cursors. Creates a webhook
# endpoint, which fails, and skips its first event.
fill() {
    settled=$(create "$coffee" "$today")
    scheduled=()
    for n in 1 2 3 4 5 6; do scheduled+=("$(create "seed-$n" "$soon")"); done
    ask -X POST "$api/accounts/acc-1/payments/${scheduled[0]}/cancel" >/dev/null
    account_cursor=$(ask "$api/accounts/acc-1/payments?limit=2" | value nextCursor)
    due_cursor=$(ask "$api/payments?dueDate=$soon&limit=2" | value nextCursor)
    curl --silent --show-error --fail "$api/sandbox/clock" -d '{"advanceSeconds":120}' >/dev/null
    for _ in $(seq 60); do
        found | grep --quiet "$settled" && break
        sleep 0.5
    done
    found | grep --quiet "$settled"
    ask -X PUT "$api/webhook-endpoints/fuzz" -H 'Content-Type: application/json' \
        -d '{"url":"http://127.0.0.1:9/hook","cursor":"1.1.0"}' >/dev/null
    curl --silent --show-error --fail "$api/sandbox/clock" -d '{"advanceSeconds":120}' >/dev/null
    for _ in $(seq 60); do
        skipped=$(blocking)
        [[ -n "$skipped" ]] && break
        sleep 0.5
    done
    ask "$api/webhook-endpoints/fuzz/skip" -H 'Content-Type: application/json' -d '{"eventId":"'"$skipped"'"}' >/dev/null
    FUZZ_KNOWN=$(python3 - "$today" "$account_cursor" "$due_cursor" "$transaction" "$skipped" "$settled" "${scheduled[@]}" <<'PYTHON'
import json, sys
today, account_cursor, due_cursor, transaction, skipped, *payments = sys.argv[1:]
print(json.dumps({"today": today, "account": "acc-1", "accountCursor": account_cursor,
                  "dueCursor": due_cursor, "transaction": transaction, "skipped": skipped, "payments": payments}))
PYTHON
    )
    export FUZZ_KNOWN
}

# generate REPORT ARGUMENTS...: sends generated requests to a bank of their own.
generate() {
    local report=$1
    shift
    start_local "$report"
    fill
    schemathesis --config-file .ci/schemathesis.toml run openapi.yaml --url "$api" "$@" \
        --report ndjson --report-ndjson-path "$folder/$report.ndjson"
}

# examples_are_ahead: whoever imports the description sends its examples as they are written. Warns for two months before their dates pass.
examples_are_ahead() {
    python3 - "$today" <<'PYTHON'
import datetime, re, sys
with open("openapi.yaml", encoding="utf-8") as file:
    dates = sorted(set(re.findall(r'scheduledFor: "([0-9-]{10})', file.read())))
today, *dates = map(datetime.date.fromisoformat, [sys.argv[1], *dates])
if dates[0] < today or (dates[-1] - today).days > 731:
    sys.exit("no payment can be for the dates of openapi.yaml: move all of them, and those of local/src/example_dates.rs")
if (days := (dates[0] - today).days) < 60:
    print(f"WARNING: in {days} days the dates of openapi.yaml begin to pass: move all of them")
PYTHON
}

openapi-spec-validator openapi.yaml
examples_are_ahead
generate report
python3 .ci/fuzz-reach.py "$folder/report.ndjson" "$least"
# A second seed; the other phases do not depend on it.
generate report-1 --seed 1 --phases fuzzing,stateful
