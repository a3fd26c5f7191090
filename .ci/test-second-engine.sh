#!/usr/bin/env bash
# Runs the journeys on a second engine, Amazon's DynamoDB Local, so that nothing depends on a peculiarity of the
# embedded one. It comes from Maven Central and listens on the loopback interface only.
#
# Usage: .ci/test-second-engine.sh FOLDER, where DynamoDB Local is installed. Needs Maven and a JDK of 17 or later.
# Without them it skips the tests, or fails if CI=true.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=""
command -v mvn >/dev/null || missing="there is no mvn"
version=$(javac -version 2>/dev/null | grep -oE '[0-9]+' | head -1) || missing="there is no JDK"
[[ -n "$missing" || $version -ge 17 ]] || missing="the JDK is $version"
if [[ -n "$missing" ]]; then
    [[ "${CI:-}" == true ]] && end=FAILED || end=SKIPPED
    echo "$end: tests on a second engine need Maven and a JDK of 17 or later, but $missing" | tee -a "${SKIPPED:-/dev/null}"
    [[ $end == SKIPPED ]]
    exit
fi

folder=$1
if ! cmp --silent .ci/dynamodb-local/pom.xml "$folder/pom.xml"; then
    rm -rf "$folder"
    mvn --quiet --batch-mode --file .ci/dynamodb-local/pom.xml \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$(realpath -m "$folder")"
    # Copied last, so that an interrupted installation starts over.
    cp .ci/dynamodb-local/pom.xml "$folder"
fi

# The engine ends when its standard input ends, and so always with this script.
coproc engine {
    exec java -XX:+UseSerialGC -Djava.library.path="$folder" -cp "$folder/*" .ci/dynamodb-local/Engine.java \
        2>"$folder/engine.log"
}
read -r port <&"${engine[0]}" || { cat "$folder/engine.log" >&2; exit 1; }
export DYNAMODB_ENDPOINT=http://127.0.0.1:$port

# journeys ARGUMENTS...: runs the journeys with these arguments of the test program.
journeys() {
    cargo test --locked --test journeys -- "$@"
}

# A cold JVM answers more slowly than the functions wait. So the result of the first run is ignored.
journeys events:: >/dev/null 2>&1 || true
# Tests that always use the embedded engine are not repeated. Nor are those of a restore: they put another table in the place of
# the hot one, and DynamoDB Local then takes the new table's first stream records for trimmed.
# Nor those of the log's wakings, which read two streams at once, and of the pace and the looks of webhooks, which run on paused time. Units of
# reads that find nothing are those of the embedded engine: DynamoDB Local counts an empty read less.
journeys --show-output --skip console::mending::mending_costs --skip archive::reads::results_for --skip laptop:: --skip log::rebuild:: \
    --skip log::webhooks::looks:: --skip log::webhooks::pace:: --skip log::webhooks::woken::
