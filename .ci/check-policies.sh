#!/usr/bin/env bash
# Checks template.yaml against checkov's security rules, after the SAM transform, without an AWS account or a
# network. .ci/checkov.yaml lists the rules that it skips, and why.
#
# Usage: .ci/check-policies.sh [TEMPLATE], with sam's python3 first on PATH, and checkov.
set -euo pipefail
cd "$(dirname "$0")/.."

template=${1:-template.yaml}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A region is required, but nothing is sent there.
export AWS_DEFAULT_REGION=eu-west-2
python3 .ci/translate-template.py "$template" >"$folder/template.json"
# Otherwise it asks the package registry for a newer version.
CKV_SKIP_PACKAGE_UPDATE_CHECK=true checkov --config-file .ci/checkov.yaml --file "$folder/template.json"
echo "$template, translated, passes checkov"
