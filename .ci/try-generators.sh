#!/usr/bin/env bash
# Generates Go by oapi-codegen and Java by openapi-generator from openapi.yaml, with their defaults, compiles the code, and runs a
# program of each against a bank that runs. Their versions are locked in .ci/generators: go.sum, and jars.txt with the sums of all jars.
#
# Usage: BANK_URL=... BANK_TOKEN=... BANK_TODAY=... .ci/try-generators.sh. Needs Go; for Java Maven and a JDK of 17 or later. What is
# missing of these is skipped, or fails if CI=true. All is kept in .tools/generators.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.tools/generators
checks=$(printf 'ok %s\n' create list amend batch events)
failed=0

go_checks() {
    mkdir -p "$tools/go/bank"
    cp .ci/generators/go/* "$tools/go"
    cd "$tools/go"
    GOFLAGS=-mod=readonly go tool oapi-codegen -generate types,client -package bank -o bank/bank.go "$description"
    GOFLAGS=-mod=readonly go build -o checks .
    NO_PROXY='*' no_proxy='*' ./checks
}

# install_jars: fetches the jars that jars.txt names, and compares their sums.
install_jars() {
    cmp --silent .ci/generators/java/jars.txt "$tools/jars/jars.txt" && return
    rm -rf "$tools/jars"
    mkdir -p "$tools/jars"
    while read -r sum artifact; do
        mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
            -Dartifact="$artifact" -DoutputDirectory="$tools/jars" </dev/null
        IFS=: read -r _ name version <<<"$artifact"
        sha256sum --check --quiet <<<"$sum  $tools/jars/$name-$version.jar"
    done <.ci/generators/java/jars.txt
    # Copied last, so that an interrupted installation starts over.
    cp .ci/generators/java/jars.txt "$tools/jars"
}

java_checks() {
    install_jars
    rm -rf "$tools/java"
    java -XX:TieredStopAtLevel=1 -jar "$tools"/jars/openapi-generator-cli-*.jar generate --generator-name java \
        --input-spec "$description" --output "$tools/java"
    mapfile -t sources < <(find "$tools/java/src/main" -name '*.java')
    javac -proc:none -nowarn -d "$tools/java/classes" -cp "$tools/jars/*" "${sources[@]}" .ci/generators/java/Checks.java
    java -XX:TieredStopAtLevel=1 -cp "$tools/java/classes:$tools/jars/*" Checks
}

# run LANGUAGE PROGRAM...: runs the checks of the language, if the programs exist.
run() {
    local language=$1 program begin=$SECONDS
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null && continue
        [[ "${CI:-}" == true ]] && { failed=1 && echo "FAILED: generated $language, because there is no $program"; return; }
        echo "SKIPPED: generated $language, because there is no $program" | tee -a "${SKIPPED:-/dev/null}"
        return
    done
    # In the background, because bash ignores failures in what stands before ||.
    "${language}_checks" >"$tools/$language.log" 2>&1 &
    if ! wait $! || [[ $(grep '^ok ' "$tools/$language.log") != "$checks" ]]; then
        cat "$tools/$language.log" >&2
        echo "FAILED: generated $language" >&2
        failed=1
        return
    fi
    echo "generated $language: compiled and checked in $((SECONDS - begin)) s"
}

mkdir -p "$tools"
description=$PWD/openapi.yaml
run go go
run java java javac mvn
exit $failed
