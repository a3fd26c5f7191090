#!/usr/bin/env bash
# Checks template.yaml without an AWS account, in three ways, because each misses faults that another finds:
# SAM's own rules; cfn-lint on the template as written; and cfn-lint on the template after the SAM transform,
# the only one that sees functions, roles and routes. Then what no linter knows: routes are closed, and resources tagged.
#
# Usage: .ci/validate-template.sh [TEMPLATE], with sam, cfn-lint and their python3 first on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

template=${1:-template.yaml}
translated=$(mktemp)
trap 'rm -f "$translated"' EXIT

# A region is required, but nothing is sent there.
export AWS_DEFAULT_REGION=eu-west-2 SAM_CLI_TELEMETRY=0

sam validate --template-file "$template"
sam validate --template-file "$template" --lint
python3 .ci/translate-template.py "$template" >"$translated"
cfn-lint --regions "$AWS_DEFAULT_REGION" --template "$translated"
echo "$template, translated, passes cfn-lint"
python3 .ci/open-routes.py "$translated"
python3 .ci/check-tags.py "$translated"
