#!/usr/bin/env bash
# Verifies requests that the sender of webhooks made, in four languages: with each block of docs/events.md, and in Python,
# JavaScript and Rust with the library of Standard Webhooks. Good ones must be accepted, and tampered, old and wrongly signed ones rejected.
#
# Usage: .ci/try-webhooks.sh [PATH-OF-EXAMPLE]. Needs cargo and python3; Node with npm, and Go: what is missing of these is skipped, or
# fails if CI=true. All is kept in .tools/webhooks.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.tools/webhooks
mkdir -p "$tools/go"
rm -rf "$tools/journal"
failed=0

# build: builds the example, and prints its path.
build() {
    cargo build --locked --package payments-local --package publish --example webhooks --message-format json-render-diagnostics |
        python3 -c 'import json, sys; print(*filter(None, (json.loads(line).get("executable") for line in sys.stdin)))'
}

# blocks LANGUAGE: the blocks of the document in this language.
blocks() {
    BLOCKS=$1 python3 - <<'PYTHON'
import os, re
with open("docs/events.md", encoding="utf-8") as file:
    found = re.findall(rf"^```{os.environ['BLOCKS']}\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
assert found, os.environ["BLOCKS"]
print("\n".join(found), end="")
PYTHON
}

rust_checks() {
    # The example has the document's block, which differs in its indentation and in who can see it.
    diff <(blocks rust | grep .) <(sed -n '/^mod document {$/,/^}$/p' functions/publish/examples/webhooks.rs |
        sed '1,2d;$d;s/^    //;s/^pub(super) fn/fn/' | grep .)
    "$example" check "$tools/cases.jsonl"
}

python_checks() {
    if ! cmp --silent .ci/requirements-webhooks.txt "$tools/venv/requirements.txt"; then
        rm -rf "$tools/venv"
        python3 -m venv "$tools/venv"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --requirement .ci/requirements-webhooks.txt
        cp .ci/requirements-webhooks.txt "$tools/venv/requirements.txt"
    fi
    blocks python >"$tools/document.py"
    PYTHONPATH=$tools "$tools/venv/bin/python" .ci/webhooks/check.py "$tools"
}

javascript_checks() {
    cp .ci/webhooks/package.json .ci/webhooks/package-lock.json .ci/webhooks/check.mjs "$tools"
    blocks js >"$tools/document.mjs"
    cd "$tools"
    if ! cmp --silent package-lock.json node_modules/package-lock.json; then
        npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
        cp package-lock.json node_modules
    fi
    node check.mjs "$tools"
}

go_checks() {
    cp .ci/webhooks/check.go "$tools/go"
    blocks go >"$tools/go/document.go"
    cd "$tools/go"
    GOFLAGS='' GOTOOLCHAIN=local go run check.go document.go "$tools"
}

# run LANGUAGE COUNT PROGRAM...: checks that each case was verified COUNT times, if the programs exist.
run() {
    local language=$1 count=$2 program
    shift 2
    for program in "$@"; do
        command -v "$program" >/dev/null && continue
        [[ "${CI:-}" == true ]] && { failed=1 && echo "FAILED: webhooks in $language, because there is no $program"; return; }
        echo "SKIPPED: webhooks in $language, because there is no $program" | tee -a "${SKIPPED:-/dev/null}"
        return
    done
    # In the background, because bash ignores failures in what stands before ||.
    "${language}_checks" >"$tools/$language.log" 2>&1 &
    if ! wait $! || [[ $(grep --count '^ok ' "$tools/$language.log") != $((count * cases)) ]]; then
        cat "$tools/$language.log" >&2
        echo "FAILED: webhooks in $language" >&2
        failed=1
        return
    fi
    echo "$language: $cases deliveries, verified by the document's block$([[ $count == 2 ]] && echo " and the library")"
}

example=$(realpath "${1:-$(build)}")
"$example" make "$tools"
cases=$(wc -l <"$tools/cases.jsonl")
[[ $cases -ge 20 ]]
run rust 2
run python 2 python3
run javascript 2 node npm
run go 1 go
exit $failed
