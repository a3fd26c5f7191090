#!/usr/bin/env bash
# Checks the console in Chromium, against cargo local with a day of data: every view, signing in, what people with and without
# rights see, what hostile clients send, accessibility, and what the browser keeps.
#
# Usage: .ci/try-console.sh [PATH-OF-LOCAL]. Needs Chromium, and Node of 20.19 or later with npm. Without them it skips the
# checks, or fails if CI=true. All is kept in .tools/console.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=""
node_fits='const [a, b] = process.versions.node.split("."); process.exit(a * 1000 + +b < 20019 ? 1 : 0)'
node -e "$node_fits" 2>/dev/null || missing="there is no such Node"
command -v npm >/dev/null || missing="there is no npm"
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[[ -n "$CHROMIUM" ]] || missing="there is no Chromium"
if [[ -n "$missing" ]]; then
    [[ "${CI:-}" == true ]] && end=FAILED || end=SKIPPED
    echo "$end: the console's checks need Chromium, Node 20.19 or later and npm, but $missing" | tee -a "${SKIPPED:-/dev/null}"
    [[ $end == SKIPPED ]]
    exit
fi

local=$(realpath "${1:-target/debug/local}")
tools=$PWD/.tools/console
mkdir -p "$tools"
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT

# start_local NAME ARGUMENTS...: starts cargo local's sandbox on free ports, and sets `url`.
start_local() {
    local log=$tools/$1.log reports=$tools/reports-$1
    shift
    # The results of an earlier run must not be read as this one's.
    : >"$log"
    rm -rf "$reports"
    RUST_LOG=error "$local" --sandbox --api-port 0 --dynamodb-port 0 --reports "$reports" "$@" >"$log" 2>&1 &
    for _ in $(seq 100); do
        grep --quiet 'Ctrl-C' "$log" && break
        sleep 0.1
    done
    url=$(sed -n 's/^  HTTP API  *\(http:[^ ]*\).*/\1/p' "$log")
    [[ -n "$url" ]] || { cat "$log" >&2; return 1; }
}

start_local bank --require-tokens
BANK_URL=$url
start_local open
OPEN_URL=$url
start_local paused --paused sending
PAUSED_URL=$url
start_local troubled
TROUBLED_URL=$url
TROUBLED_DB=$(sed -n 's/^  DynamoDB API  *\(http:[^ ]*\).*/\1/p' "$tools/troubled.log")
start_local limited --require-tokens --max-day payments=1
LIMITED_URL=$url
export CHROMIUM BANK_URL OPEN_URL PAUSED_URL TROUBLED_URL TROUBLED_DB LIMITED_URL

cp .ci/console/* .ci/console/.npmrc "$tools"
cd "$tools"
if ! cmp --silent package-lock.json node_modules/package-lock.json; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules
fi
NO_PROXY='*' no_proxy='*' node check.mjs
