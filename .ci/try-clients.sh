#!/usr/bin/env bash
# Generates two clients of clients/ from openapi.yaml, checks their types and packages, and builds the third, in Rust. Runs the checks
# of clients/checks.txt in each language against cargo local, and the blocks of docs/integrate.md and of the packages' readmes. Fails if
# one of them fails, or if a language did not run one of the list. Runs .ci/try-generators.sh against the same bank, and at the end .ci/try-webhooks.sh.
#
# Usage: .ci/try-clients.sh [PATH-OF-LOCAL]. Needs cargo, curl, Python of 3.11 or later, and Node of 20.19 or later with npm.
# Without Python or Node it skips the checks, or fails if CI=true. All is kept in .tools/clients.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=""
node_fits='const [a, b] = process.versions.node.split("."); process.exit(a * 1000 + +b < 20019 ? 1 : 0)'
node -e "$node_fits" 2>/dev/null || missing="there is no such Node"
command -v npm >/dev/null || missing="there is no npm"
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    missing="there is no such Python"
if [[ -n "$missing" ]]; then
    [[ "${CI:-}" == true ]] && end=FAILED || end=SKIPPED
    echo "$end: the clients need Node 20.19 or later, npm and Python 3.11 or later, but $missing" |
        tee -a "${SKIPPED:-/dev/null}"
    [[ $end == SKIPPED ]]
    exit
fi

local=$(realpath "${1:-target/debug/local}")
tools=$PWD/.tools/clients
mkdir -p "$tools"
# Examples of the Rust checks, so that they are built with what those have.
examples=clients/rust/checks/examples
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -f "$examples"/document*.rs' EXIT

value() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

ask() {
    curl --silent --show-error --fail-with-body --noproxy '*' --oauth2-bearer "$BANK_TOKEN" "$@"
}

# start_local LOG ARGUMENTS...: starts cargo local's sandbox on free ports, and sets BANK_URL.
start_local() {
    local log=$1
    shift
    # The results of an earlier run must not be read as this one's.
    : >"$log"
    rm -rf "$tools/reports"
    RUST_LOG=error "$local" --sandbox --api-port 0 --dynamodb-port 0 --reports "$tools/reports" "$@" >"$log" 2>&1 &
    for _ in $(seq 100); do
        grep --quiet 'Ctrl-C' "$log" && break
        sleep 0.1
    done
    BANK_URL=$(sed -n 's/^  HTTP API  *\(http:[^ ]*\).*/\1/p' "$log")
    [[ -n "$BANK_URL" ]] || { cat "$log" >&2; return 1; }
}

# start_bank: starts a bank that requires tokens. Its payment that is due at once is settled.
start_bank() {
    start_local "$tools/local.log" --require-tokens
    BANK_SETTLED_KEY=$(sed -n "s/.*Idempotency-Key: \(coffee-[^']*\).*/\1/p" "$tools/local.log")
    BANK_TRANSACTION=$(sed -n 's,.*transactionId=\([^ '\'']*\).*,\1,p' "$tools/local.log")
    BANK_TODAY=$(sed -n 's,.*dueDate=\([0-9-]*\).*,\1,p' "$tools/local.log")
    [[ -n "$BANK_SETTLED_KEY" && -n "$BANK_TRANSACTION" && -n "$BANK_TODAY" ]] ||
        { cat "$tools/local.log" >&2; return 1; }
    BANK_TOKEN=$(curl --silent --show-error --fail --noproxy '*' "$BANK_URL/oauth2/token" \
        -d grant_type=client_credentials | value access_token)
    export BANK_URL BANK_SETTLED_KEY BANK_TRANSACTION BANK_TODAY BANK_TOKEN
    ask "$BANK_URL/accounts/acc-1/payments" -H 'Content-Type: application/json' \
        -H "Idempotency-Key: $BANK_SETTLED_KEY" -d '{
        "payeeAccountId":"acc-3","amountMinor":350,"currency":"GBP","scheduledFor":"'"$BANK_TODAY"'"}' >/dev/null
    curl --silent --show-error --fail --noproxy '*' "$BANK_URL/sandbox/clock" -d '{"advanceSeconds":120}' >/dev/null
}

# is_settled: whether the payment is settled, and the indexes and counts have followed.
is_settled() {
    ask --get "$BANK_URL/payments" --data-urlencode "transactionId=$BANK_TRANSACTION" | grep --quiet PROCESSED &&
        ask "$BANK_URL/payments?dueDate=$BANK_TODAY&status=PROCESSED&limit=1000" | grep --quiet paymentId &&
        ask "$BANK_URL/counts?from=$BANK_TODAY&to=$BANK_TODAY" | grep --quiet '"PROCESSED":1'
}

await_settlement() {
    for _ in $(seq 60); do
        is_settled && return
        sleep 0.5
    done
    echo "the payment is not settled after half a minute" >&2
    return 1
}

# compare LANGUAGE: fails if the language did not report each check of the list.
compare() {
    diff <(cut -d: -f1 clients/checks.txt | sort) <(sed -n 's/^ok \([^:]*\):.*/\1/p' "$tools/$1.log" | sort) >&2 ||
        { echo "$1 did not run the checks of clients/checks.txt" >&2; return 1; }
}

python_checks() {
    local pip=("$tools/venv/bin/pip" --quiet --disable-pip-version-check)
    rm -rf "$tools/packages"
    "${pip[@]}" wheel --no-index --no-deps --no-build-isolation --wheel-dir "$tools/packages" "$tools/python"
    "${pip[@]}" install --no-index --no-deps --force-reinstall "$tools/packages"/*.whl
    cd "$tools/python"
    "$tools/venv/bin/ruff" format --quiet --check .
    "$tools/venv/bin/ruff" check --quiet .
    "$tools/venv/bin/mypy"
    await_settlement
    NO_PROXY='*' no_proxy='*' "$tools/venv/bin/python" -m checks
}

typescript_checks() {
    cd "$tools/typescript"
    await_settlement
    node dist/checks/main.js
}

# build KIND NAME: builds a program of client-checks with the features of `cargo local`, and sets `built` to its path.
build() {
    built=$(cargo build --locked --package payments-local --package client-checks "--$1" "$2" --message-format json-render-diagnostics |
        python3 -c 'import json, sys; print(*filter(None, (json.loads(line).get("executable") for line in sys.stdin)))')
}

rust_checks() {
    build bin client-checks
    await_settlement
    "$built"
}

# run LANGUAGE: generates, checks and compares one of the clients.
run() {
    [[ $1 == rust ]] || clients/generate.sh "$1"
    # In the background, because bash ignores failures in what stands before ||.
    "$1_checks" >"$tools/$1.log" 2>&1 &
    wait $! || { cat "$tools/$1.log" >&2; return 1; }
    compare "$1"
}

# blocks DOCUMENT LANGUAGE [EXAMPLES]: prints the blocks of a document in this language, for the running bank, as one program. With a
# folder of Rust's examples, makes each block an example of its own.
blocks() {
    python3 - "$@" <<'PYTHON'
import os, re, sys
document, language, *examples = sys.argv[1:]
with open(document, encoding="utf-8") as file:
    text = file.read().replace("http://127.0.0.1:8080", os.environ["BANK_URL"])
found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
assert found, language
if not examples:
    print("\n".join(found))
for number, block in enumerate(found if examples else [], 1):
    with open(f"{examples[0]}/document{number}.rs", "w", encoding="utf-8") as file:
        file.write(f"//! A block of {document}.\n\n" + block)
PYTHON
}

# run_documents: runs each block of the packages' readmes and of docs/integrate.md, which moves the clock.
run_documents() {
    start_local "$tools/document.log"
    export BANK_URL NO_PROXY='*' no_proxy='*'
    blocks docs/integrate.md sh >"$tools/document.sh"
    blocks docs/integrate.md python >"$tools/document.py"
    blocks clients/python/README.md python >"$tools/readme.py"
    blocks docs/integrate.md ts >"$tools/typescript/checks/document.ts"
    blocks clients/typescript/README.md ts >"$tools/typescript/checks/readme.ts"
    mkdir -p "$examples"
    blocks docs/integrate.md rust "$examples"
    (cd "$tools/typescript" && node_modules/.bin/tsc)
    "$tools/venv/bin/python" "$tools/readme.py" >/dev/null
    (cd "$tools/typescript" && node dist/checks/readme.js) >/dev/null
    bash -eu "$tools/document.sh"
    "$tools/venv/bin/python" "$tools/document.py"
    (cd "$tools/typescript" && node dist/checks/document.js)
    for block in "$examples"/document*.rs; do
        block=${block##*/}
        build example "${block%.rs}"
        "$built"
    done
}

start_bank
export CHECKS=$PWD/clients/checks.txt
# The same whatever git's remote is.
export REPOSITORY_URL=https://git.example.com/scheduled-payments
run python
run typescript
(cd "$tools/typescript" && npm pack --silent --pack-destination "$tools/packages") >/dev/null
.ci/check-packages.py "$tools/packages"/*.whl "$tools/packages"/*.tgz "$REPOSITORY_URL"
run rust
.ci/try-generators.sh
run_documents
echo "each of $(wc -l <clients/checks.txt) checks passes in Python, TypeScript and Rust"
.ci/try-webhooks.sh
