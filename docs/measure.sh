#!/usr/bin/env bash
# Repeats the measurements of docs/performance.md and writes each part between its markers, as its command printed
# it. Needs a machine that does nothing else; the feed alone takes a quarter of an hour.
#
# Usage: docs/measure.sh [PART...], any of the parts below; all of them by default.
# PAYMENTS is the size of the feed, by default a million.
set -euo pipefail
cd "$(dirname "$0")/.."

document=docs/performance.md
parts="machine feed mixed memory cold-starts capacity"

machine() {
    local processor memory
    processor=$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
    memory=$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)
    echo "$(nproc) cores of $processor, $memory, Linux $(uname -r | cut -d . -f 1,2), $(rustc --version | cut -d ' ' -f 1,2)."
}

# block COMMAND...: prints the command's output as a block.
block() {
    echo '```text'
    "$@" | sed -e '/^$/d'
    echo '```'
}

feed() {
    block env TMPDIR=/dev/shm cargo load --payments "${PAYMENTS:-1000000}"
}

mixed() {
    block cargo load --payments 20000 --mixed
}

memory() {
    for payments in 10000 100000; do
        block env PAYMENTS=$payments cargo test --quiet --package payments-memory
    done
}

cold-starts() {
    local architecture=x86_64
    [[ $(uname -m) == aarch64 ]] && architecture=arm64
    sam build --parameter-overrides "Architecture=$architecture" >&2
    (cd shared/boot && cargo lambda build --release --features aws --example empty >&2)
    COLD_STARTS=21 EMPTY_BOOTSTRAP=$PWD/target/lambda/empty/bootstrap PROFILE=load .ci/run-bootstraps.sh | grep '^|'
}

# capacity: its tests write the tables themselves.
capacity() {
    UPDATE_DOCS=1 cargo test --test capacity --test bill >&2
}

# write PART: writes its output and the date between its markers.
write() {
    local found
    found=$(mktemp)
    "$1" >"$found"
    printf '\nMeasured on %s.\n' "$(date --utc +%F)" >>"$found"
    [[ $1 == capacity ]] || sed -i -e "/<!-- $1 -->/,/<!-- \/$1 -->/{//!d}" -e "/<!-- $1 -->/r $found" "$document"
    rm "$found"
}

for part in ${@:-$parts}; do
    [[ " $parts " == *" $part "* ]] || { echo "no part $part; there are: $parts" >&2; exit 2; }
    echo "==> $part" >&2
    write "$part"
done
