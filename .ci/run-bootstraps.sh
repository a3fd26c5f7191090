#!/usr/bin/env bash
# Runs the programs that sam build has made under Lambda's own emulator, with a frozen clock. tests/bootstraps
# delivers every event to them and compares their responses with those of the handlers in process. Also fails
# if a zip is too large.
#
# Usage: .ci/run-bootstraps.sh [FOLDER [NAME]], after `sam build --parameter-overrides Architecture=x86_64` (arm64 on an
# ARM machine). The python3 on PATH must have sam, which contains the emulator, and libfaketime, the clock.
# FOLDER is .aws-sam/build by default; cargo lambda's works too. With NAME, only tests whose names contain it are run.
set -euo pipefail
cd "$(dirname "$0")/.."

export BOOTSTRAPS=${1:-.aws-sam/build}
case $(uname -m) in
    aarch64) machine=arm64 ;;
    *) machine=x86_64 ;;
esac

# place PACKAGE FILE: prints the path of a file in a Python package.
place() {
    python3 - "$@" <<'END'
import importlib.util
import pathlib
import sys

print(pathlib.Path(importlib.util.find_spec(sys.argv[1]).origin).parent / sys.argv[2])
END
}

LAMBDA_EMULATOR=$(place samcli local/rapid/aws-lambda-rie-$machine)
FAKETIME_LIBRARY=$(place libfaketime vendor/libfaketime/src/libfaketime.so.1)
BOOTSTRAPS=$(realpath "$BOOTSTRAPS")
export BOOTSTRAPS LAMBDA_EMULATOR FAKETIME_LIBRARY

# A larger zip makes a slower cold start: a function's zip has at most 5 MB, or 5.6 MB if nobody waits for it. The console has the
# clients of Lambda, SQS and S3, and is opened a few times a day. Those that read sealed parts have S3's client and Parquet.
python3 - <<'END'
import os
import pathlib
import sys
import zlib

limits = {"PublishFunction": 5_600_000, "ReportFunction": 5_600_000, "UndoFunction": 5_600_000, "SealFunction": 6_500_000, "QueryAccountFunction": 5_600_000, "ConsoleFunction": 7_000_000}
programs = sorted(pathlib.Path(os.environ["BOOTSTRAPS"]).glob("*/bootstrap"))
sizes = {it.parent.name: len(zlib.compress(it.read_bytes())) for it in programs}
for name, size in sizes.items():
    print(f"{name}: {size / 1_000_000:.2f} MB zipped")
too_large = [name for name, size in sizes.items() if size > limits.get(name, 5_000_000)]
if too_large:
    sys.exit(f"too many bytes zipped: {', '.join(too_large)}; see profile.release in Cargo.toml")
END

cargo test --locked --test bootstraps --profile "${PROFILE:-test}" -- "${@:2}"
