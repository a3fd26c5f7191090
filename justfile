# The steps of .ci/run by name, for https://just.systems. Nothing needs just: each recipe is the command itself.
# Recipes that need tools of .tools/ work after one run of .ci/run, which installs them.

set shell := ["bash", "-euo", "pipefail", "-c"]

architecture := if arch() == "aarch64" { "arm64" } else { "x86_64" }
tools := justfile_directory() / ".tools"
export PATH := tools / "sam/bin:" + tools / "bin:" + env("PATH") + ":" + tools / "checkov/bin"
export SAM_CLI_TELEMETRY := "0"
# Packages that need more than `cargo local` builds: the Rust client over HTTP, and AWS's clients.
http := "--package client-checks --package payments-load --package payments-memory --package scheduled-payments"
aws := "--package console@0.1.0-dev --package payments-boot --package payments-files --package publish --features console/aws,payments-boot/aws,payments-files/aws,publish/aws-tests"

# List the recipes.
default:
    @just --list

# Run everything that a change must pass.
ci:
    .ci/run

# Run the system on this machine.
local *arguments:
    cargo local {{arguments}}

# Simulate a banking day on a fast clock.
demo payments="1000":
    cargo local demo --payments {{payments}}

# Play simulated months, in which everything fails that can.
months seeds="4":
    cargo build --locked --config .ci/months.toml --bin month
    target/debug/month --every-kind --seeds {{seeds}}

# Check the formatting.
format:
    cargo fmt --all --check

# Run clippy.
lint:
    cargo clippy --workspace --all-targets --locked --features aws,aws-tests -- -D warnings
    cargo clippy --workspace --locked --features aws,aws-tests --test months --test outages --test capacity --test bill -- -D warnings

# Validate the template.
template:
    .ci/validate-template.sh

# Check the template against security rules.
policies:
    .ci/check-policies.sh

# Build the Rust documentation.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --features aws,aws-tests

# Test one function alone: `just t settle`.
t function:
    cargo test --package {{function}}@0.1.0-dev

# Test one journey: `just j create`.
j journey:
    cargo test --test journeys -- {{journey}}

# Run the tests.
test:
    cargo test --locked

# Run the tests that `cargo test` leaves out because they are slow: short months, every weakness, outages, write units and partitions.
slow:
    cargo test --locked --config .ci/months.toml --test months --test outages --test capacity --test bill

# Run the tests of AWS's clients, of the Rust client, of the load generator and of memory.
others:
    cargo test --locked {{http}}
    cargo test --locked {{aws}}

# Run the crash tests and list their cases in tests/cases.txt.
cases:
    tests/list-cases.sh

# Run the journeys on DynamoDB Local.
second-engine:
    .ci/test-second-engine.sh {{tools}}/dynamodb-local

# Create 20,000 payments and check that none is lost.
load:
    cargo build --locked --package payments-load
    target/debug/load --payments 20000 --json

# Put faults into the template and check that they are found.
template-faults:
    .ci/try-template-faults.py

# Build the functions as they are deployed.
build:
    sam build --parameter-overrides Architecture={{architecture}}

# Run the built functions under Lambda's emulator.
bootstraps: build
    .ci/run-bootstraps.sh

# Deploy the built functions to an emulator of AWS.
deployment: build
    cargo build --locked --package payments-local --package payments-restore
    python3 .ci/try-deployment.py {{tools}}/emulator/bin/ministack {{tools}}/awscli/bin target/debug/restore

# Follow docs/sam-local.md in real containers.
sam-local: build
    cargo build --locked --package payments-local
    python3 .ci/try-sam-local.py {{tools}}/containers target/debug/local

# On Debian with x86_64: build three functions for arm64 and deliver their events under emulation. Takes a quarter of an hour.
arm64:
    .ci/try-arm64.sh {{tools}}/arm64

# With nightly Rust and cargo-fuzz: fuzz the decoder of compressed data for ten minutes.
fuzz-frames:
    .ci/fuzz-frames.sh

# Send generated requests to the API and compare the responses with openapi.yaml.
fuzz:
    cargo build --locked --package payments-local
    .ci/fuzz-api.sh

# Generate or build the clients, check them and what generators make in Go and Java, and run docs/integrate.md and docs/events.md.
clients:
    cargo build --locked --package payments-local
    .ci/try-clients.sh target/debug/local

# Check the console in Chromium.
console:
    cargo build --locked --package payments-local
    .ci/try-console.sh target/debug/local

# Check the licences and sources of the dependencies.
dependencies:
    .ci/check-dependencies.py

# With Go: check the workflow on GitHub.
workflow:
    go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# With cargo-deny: check for known vulnerabilities.
advisories:
    cargo-deny fetch db
    cargo-deny --locked check advisories
