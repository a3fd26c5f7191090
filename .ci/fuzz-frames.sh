#!/usr/bin/env bash
# Fuzzes the decoder of compressed data for SECONDS_TO_FUZZ (600 by default): no panic, no wrong text, and no allocation of
# more than a megabyte, which is what zstd's own state may take. The corpus is in the tree; what was found beyond it is not kept.
#
# Needs nightly Rust, cargo-fuzz (`cargo install cargo-fuzz`), and zig of .tools, which .ci/run installs. zig is clang: with it,
# the C code of zstd is instrumented too. gcc cannot do that, and the fuzzer would not see what it reaches.
set -euo pipefail
cd "$(dirname "$0")/.."

zig=${ZIG:-$(ls -d "$PWD"/.tools/sam/lib/python3*/site-packages/ziglang/zig)}
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
mkdir "$scratch/found"
# cc gives a target's name as rustc has it, which zig does not know.
cat >"$scratch/cc" <<EOF
#!/usr/bin/env bash
for argument; do
    shift
    [[ \$argument == --target=* ]] || set -- "\$@" "\$argument"
done
exec "$zig" cc "\$@"
EOF
chmod +x "$scratch/cc"
export CC="$scratch/cc" CFLAGS="-fsanitize=fuzzer-no-link -fno-sanitize=undefined"
cd shared/store
cargo +nightly fuzz run frame "$scratch/found" fuzz/corpus/frame -- \
    -max_total_time="${SECONDS_TO_FUZZ:-600}" -max_len=10000 -malloc_limit_mb=1 -timeout=5 -keep_seed=1 -print_final_stats=1
