#!/usr/bin/env bash
# Fuzzes the decoder of compressed data for SECONDS_TO_FUZZ (600 by default): no panic, no wrong text, and no allocation of
# more than a megabyte, which is what zstd's own state may take. The corpus is in the tree; what was found beyond it is not kept.
#
# Needs nightly Rust and cargo-fuzz (`cargo install cargo-fuzz`). The C code of zstd is not instrumented: its own project
# fuzzes it. Its calls to malloc and memcpy are checked by AddressSanitizer.
set -euo pipefail
cd "$(dirname "$0")/../shared/store"

found=$(mktemp -d)
trap 'rm -r "$found"' EXIT
cargo +nightly fuzz run frame "$found" fuzz/corpus/frame -- \
    -max_total_time="${SECONDS_TO_FUZZ:-600}" -max_len=10000 -malloc_limit_mb=1 -timeout=5 -keep_seed=1 -print_final_stats=1
