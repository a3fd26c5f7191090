# The names that docs/alarms.md, docs/operations.md and docs/restore.md use. Read this file into bash:
#   . docs/commands.sh payments-prod   # or payments-dev
#   . docs/commands.sh local           # to train against `cargo local`, in a shell of its own
# shellcheck shell=bash
case "${1:-}" in
  '' | *[!A-Za-z0-9-]*)
    echo "Usage: . docs/commands.sh payments-prod   # or payments-dev, or local" >&2
    # shellcheck disable=SC2317 # Somebody may run this file instead of reading it.
    return 2 2>/dev/null || exit 2 ;;
esac
STACK="$1"

# The stack: its outputs, parameters and resources.
output() { aws cloudformation describe-stacks --stack-name "$STACK" \
  --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue" --output text; }
parameter() { aws cloudformation describe-stacks --stack-name "$STACK" \
  --query "Stacks[0].Parameters[?ParameterKey=='$1'].ParameterValue" --output text; }
resource() { aws cloudformation describe-stack-resource --stack-name "$STACK" --logical-resource-id "$1" \
  --query StackResourceDetail.PhysicalResourceId --output text; }

# Functions.
invoke() { aws lambda invoke --function-name "$(resource "$1")" --cli-binary-format raw-in-base64-out \
  --cli-read-timeout 0 --payload "$2" /dev/stdout; }
run() {   # an action: does what a schedule would do
  case "$1" in
    sweep | redrive) invoke DailyDueSweeperFunction "{\"action\":\"$1\"}" ;;
    report) invoke ReportFunction '{"action":"report"}' ;;
    archive) invoke ArchiveFunction '{"action":"archive"}' ;;
    recount) invoke RecountFunction '{"action":"recount"}' ;;
    look) invoke RedateFunction '{"action":"look"}' ;;
    *) echo "run what? sweep, redrive, report, archive, recount or look" >&2; return 1 ;;
  esac
}
logs() { aws logs tail "/aws/lambda/$STACK/$1" --since "${2:-1h}" --format short; }
access_log() {   # the requests that failed with 5xx, or with `all` every request; how far back
  local status=5
  if [ "${1:-}" = all ]; then status=; shift; fi
  aws logs tail "/aws/vendedlogs/$STACK/api" --since "${1:-1h}" --filter-pattern "{ \$.status = \"$status*\" }"
}
mapping() {   # a mapping: prints its state and its last change. With --enabled or --no-enabled, switches it
  [ -n "${1:-}" ] || { echo "which mapping?" >&2; return 1; }
  if [ $# -lt 2 ]; then
    aws lambda get-event-source-mapping --uuid "$(resource "$1")" --query '[State, LastModified]' --output text
  else
    aws lambda update-event-source-mapping --uuid "$(resource "$1")" "$2" --query State --output text
  fi
}
schedule() {   # a schedule: prints its state and its last change. With ENABLED or DISABLED, switches it
  [ -n "${1:-}" ] || { echo "which schedule?" >&2; return 1; }
  if [ $# -lt 2 ]; then
    aws scheduler get-schedule --name "$(resource "$1")" --query '[State, LastModificationDate]' --output text
  else
    aws scheduler update-schedule --cli-input-json "$(aws scheduler get-schedule --name "$(resource "$1")" --output json \
      --query "{Name: Name, ScheduleExpression: ScheduleExpression, ScheduleExpressionTimezone: ScheduleExpressionTimezone,
        FlexibleTimeWindow: FlexibleTimeWindow, Target: Target, State: '$2'}")"
  fi
}

# Queues.
queue_arn() { aws sqs get-queue-attributes --queue-url "$(resource "$1")" \
  --attribute-names QueueArn --query Attributes.QueueArn --output text; }
peek() { aws sqs receive-message --queue-url "$(resource "$1")"; }
purge() { aws sqs purge-queue --queue-url "$(resource "$1")"; }
move_back() { aws sqs start-message-move-task --source-arn "$(queue_arn "$1")"; }
stop_move() { aws sqs cancel-message-move-task --task-handle "$(aws sqs list-message-move-tasks \
  --source-arn "$(queue_arn "$1")" --query "Results[?Status=='RUNNING'].TaskHandle" --output text)"; }
gate() {   # open or closed: sets the policy of the request queue as the parameter RequestGate does
  local url arn policy
  case "${1:-}" in open | closed) ;; *) echo "gate open, or gate closed?" >&2; return 1 ;; esac
  url="$(resource RequestQueue)" && arn="$(queue_arn RequestQueue)" || return
  policy="$(aws sqs get-queue-attributes --queue-url "$url" --attribute-names Policy --query Attributes.Policy --output text)" || return
  [ "$policy" != None ] || policy='{"Version": "2012-10-17", "Statement": []}'
  policy="$(jq -c --arg gate "$1" --arg queue "$arn" '.Statement |= map(select(.Sid != "GateIsClosed")) | if $gate == "closed" then
    .Statement += [{Sid: "GateIsClosed", Effect: "Deny", Principal: "*", Action: "sqs:ReceiveMessage", Resource: $queue}]
    else . end' <<< "$policy")" || return
  aws sqs set-queue-attributes --queue-url "$url" --attributes "$(jq -nc --arg policy "$policy" '{Policy: $policy}')"
}

# The API.
token() {   # a scope, for example payments/inspect. With a JwtIssuer of your own, set TOKEN to a token from there.
  [ -z "${TOKEN:-}" ] || { echo "$TOKEN"; return; }
  local client="$(output OperationsClientId)" secret
  secret="$(aws cognito-idp describe-user-pool-client --user-pool-id "$(output UserPoolId)" --client-id "$client" \
    --query UserPoolClient.ClientSecret --output text)"
  curl -s -u "$client:$secret" "$(output TokenUrl)" -d grant_type=client_credentials -d "scope=$1" |
    sed 's/.*"access_token":"\([^"]*\).*/\1/'
}
get() { curl -sG --oauth2-bearer "$(token payments/inspect)" "$(output ApiUrl)$1" "${@:2}"; }
send() { curl -s -X "$1" --oauth2-bearer "$(token payments/webhooks)" -H 'Content-Type: application/json' "$(output ApiUrl)$2" "${@:3}"; }
chosen() {   # a webhook endpoint's id: what its operator chose, as a PUT takes it
  get "/webhook-endpoints/$1" | jq '{url, description, types, accounts} | with_entries(select(.value != null))'
}

# Files and tables.
settled() {   # pk, sk: the transaction id that the long-term table has for a payment
  aws dynamodb get-item --table-name "$(output HistoryTableName)" --consistent-read \
    --key "{\"pk\":{\"S\":\"$1\"},\"sk\":{\"S\":\"$2\"}}" --query Item.transactionId.S --output text
}
journal() { aws s3 ls --recursive "s3://$(output ReportsBucketName)/journal/"; }
item() {   # a table, and the partition and the sort key, as the log names them
  aws dynamodb get-item --consistent-read --table-name "$1" --key "{\"pk\":{\"S\":\"$2\"},\"sk\":{\"S\":\"$3\"}}" --output json
}
report_job() { item "$(output PaymentsTableName)" 'CHECKPOINT#report' job; }
versions() {   # a file; the bucket, if it is not the one of the reports
  aws s3api list-object-versions --bucket "${2:-$(output ReportsBucketName)}" --prefix "$1" --output text \
    --query 'Versions[].[VersionId, Size, LastModified]'
}
put_back() {   # a file, its version; the bucket, if it is not the one of the reports
  local bucket="${3:-$(output ReportsBucketName)}"
  aws s3api copy-object --bucket "$bucket" --key "$1" --copy-source "$bucket/$1?versionId=$2"
}
drop_version() { aws s3api delete-object --bucket "$(output ReportsBucketName)" --key "$1" --version-id "$2"; }
expire() { aws dynamodb update-time-to-live --table-name "$1" \
  --time-to-live-specification Enabled=true,AttributeName=expires_at; }
insights() { aws dynamodb update-contributor-insights --table-name "$1" --contributor-insights-action "${@:2}"; }
audit() { aws dynamodb query --table-name "$(output HistoryTableName)" --no-scan-index-forward --max-items 20 \
  --key-condition-expression 'pk = :month' \
  --expression-attribute-values "{\":month\":{\"S\":\"AUDIT#$(date -u +%Y-%m)\"}}"; }
copy_segment() {   # partition, sort, instant: gets a segment of the event log as it was then, and as it is
  local log
  log="$(output LogTableName)"
  aws dynamodb restore-table-to-point-in-time --source-table-name "$log" --target-table-name "$STACK-log-copy" \
    --restore-date-time "$3" &&
    aws dynamodb wait table-exists --table-name "$STACK-log-copy" &&
    item "$STACK-log-copy" "$1" "$2" | jq -e .Item > segment.json && item "$log" "$1" "$2" > segment-now.json
}
put_segment() { aws dynamodb put-item --table-name "$(output LogTableName)" --item file://segment.json; }
drop_copy() { aws dynamodb delete-table --table-name "$STACK-log-copy"; }

# `cargo local` has the API and the functions. Of the other commands, this prints what a stack would get.
if [ "$STACK" = local ]; then
  local_url=http://127.0.0.1:8080
  invoke() { curl -s "$local_url/2015-03-31/functions/$1/invocations" -d "$2"; }
  get() { curl -sG "$local_url$1" "${@:2}"; }
  send() { curl -s -X "$1" -H 'Content-Type: application/json' "$local_url$2" "${@:3}"; }
  logs() { echo "The lines of $1 are in the terminal of cargo local."; }
  aws() { echo "A stack would get: aws $*" >&2; return 1; }
  cargo() { [ "$1" != restore ] || { echo "A stack would get: cargo $*" >&2; return 1; }; command cargo "$@"; }
  sam() { echo "A stack would get: sam $*" >&2; return 1; }
fi
