#!/usr/bin/env bash
# Builds functions for arm64, which the template deploys by default, and delivers their events to them under emulation:
# they must answer as on x86_64 and in process, under a frozen clock (tests/bootstraps). For hand and releases; a cold
# build takes a quarter of an hour on two cores.
#
# Usage: .ci/try-arm64.sh FOLDER [FUNCTION...], on a Debian machine with x86_64, with sam's tools first on PATH. FOLDER
# keeps what is downloaded and built: the emulator QEMU, and arm64's C library and libfaketime, unpacked and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(realpath -m "$1")
shift
functions=("$@")
[[ $# -gt 0 ]] || functions=(ingest settle stream-aggregator)

# apt ARGUMENTS...: apt-get for arm64, with lists and a status of its own.
apt() {
    apt-get --quiet --quiet -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none \
        -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt/cache" "$@"
}

# Downloads and unpacks what runs programs of arm64.
install() {
    [[ -e $folder/ready ]] && return
    rm -rf "$folder"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/packages"
    touch "$folder/apt/status"
    apt update
    (
        cd "$folder/packages"
        apt download libc6 libgcc-s1 libfaketime
        apt-get --quiet --quiet download qemu-user-static
    )
    for package in "$folder"/packages/*_arm64.deb; do dpkg --extract "$package" "$folder/arm64"; done
    dpkg --extract "$folder"/packages/qemu-user-static_*.deb "$folder/qemu"
    # Created last, so that an interrupted installation starts over.
    touch "$folder/ready"
}

# Builds the functions as sam does, and puts a script in each one's place that runs it under QEMU.
build() {
    local packages=() function program
    for function in "${functions[@]}"; do packages+=(--package "$function"); done
    rustup target add aarch64-unknown-linux-gnu
    cargo lambda build --locked --release --arm64 --lambda-dir "$folder/built" "${packages[@]}"
    rm -rf "$folder/bootstraps"
    for function in "${functions[@]}"; do
        program=$folder/built/$function/bootstrap
        mkdir -p "$folder/bootstraps/$function"
        printf '#!/bin/sh\nexec %q -L %q -E LD_PRELOAD=%q %q\n' "$folder/qemu/usr/bin/qemu-aarch64-static" "$folder/arm64" \
            "$folder/arm64/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1" "$program" \
            >"$folder/bootstraps/$function/bootstrap"
        chmod +x "$folder/bootstraps/$function/bootstrap"
    done
}

install
build
for function in "${functions[@]}"; do .ci/run-bootstraps.sh "$folder/bootstraps" "$function"; done
echo "${functions[*]}: built for arm64, they answer as on x86_64"
