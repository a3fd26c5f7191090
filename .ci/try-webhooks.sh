#!/usr/bin/env bash
# Verifies the messages of clients/vectors/webhooks.json, which the sender of webhooks signed, in three languages: with each block of
# docs/events.md, and in Python and JavaScript with the library of Standard Webhooks. Good ones must be accepted, and tampered, old and
# wrongly signed ones rejected. The Rust client's tests verify them, too.
#
# Usage: .ci/try-webhooks.sh, after clients/generate.sh. Needs python3, Node, and Go: if that is missing, it is skipped, or fails if CI=true.
# All is kept in .tools/webhooks.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.tools/webhooks
clients=$PWD/.tools/clients
vectors=$PWD/clients/vectors/webhooks.json
rm -rf "$tools"
mkdir -p "$tools/go"
failed=0

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

python_checks() {
    blocks python >"$tools/document.py"
    PYTHONPATH=$tools:$clients/python/src "$clients/venv/bin/python" .ci/webhooks/check.py "$vectors" "$tools" tests/golden/file.journal.json
}

javascript_checks() {
    # There, both packages are found.
    cp .ci/webhooks/check.mjs "$clients/typescript/dist/checks"
    blocks js >"$clients/typescript/dist/checks/document.mjs"
    node "$clients/typescript/dist/checks/check.mjs" "$vectors"
}

go_checks() {
    cp .ci/webhooks/check.go "$tools/go"
    blocks go >"$tools/go/document.go"
    cd "$tools/go"
    GOFLAGS='' GOTOOLCHAIN=local go run check.go document.go "$vectors"
}

# run LANGUAGE COUNT PROGRAM: checks that each message was verified COUNT times, if the program exists.
run() {
    local language=$1 count=$2 program=$3
    if ! command -v "$program" >/dev/null; then
        [[ "${CI:-}" == true ]] && { failed=1 && echo "FAILED: webhooks in $language, because there is no $program"; return; }
        echo "SKIPPED: webhooks in $language, because there is no $program" | tee -a "${SKIPPED:-/dev/null}"
        return
    fi
    # In the background, because bash ignores failures in what stands before ||.
    "${language}_checks" >"$tools/$language.log" 2>&1 &
    if ! wait $! || [[ $(grep --count '^ok ' "$tools/$language.log") != $((count * messages)) ]]; then
        cat "$tools/$language.log" >&2
        echo "FAILED: webhooks in $language" >&2
        failed=1
        return
    fi
    echo "$language: $messages messages, verified by the document's block$([[ $count == 2 ]] && echo " and the library")"
}

messages=$(grep --count '^      "name"' "$vectors")
[[ $messages -ge 30 ]]
run python 2 python3
run javascript 2 node
run go 1 go
exit $failed
