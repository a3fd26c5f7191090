#!/usr/bin/env python3
"""Shows that the checks of template.yaml find faults.

Puts one fault after another into a copy of the template, and prints which check finds it: tests/rules, which
read the template that PAYMENTS_TEMPLATE names, or else .ci/validate-template.sh, which takes longer, or
.ci/check-policies.sh. Fails if no check finds a fault, or if a check rejects the unchanged template.

Usage: .ci/try-template-faults.py [RULES | --names], with the tools of both scripts first on PATH. RULES is the built
tests/rules; without it, cargo builds them. With --names it only prints the faults, and fails if the template lacks the text of one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
AT_ONCE = os.cpu_count() or 2

# The rules that read the template: the others would say of each fault what they say of none.
SOURCES = sorted(ROOT.glob("tests/rules/**/*.rs"))
OF_TEMPLATE = [f"{file.stem}::" for file in SOURCES if "template()" in file.read_text(encoding="utf-8")]

# The patterns of each check's error message, the most specific first.
TOLD_BY_RULES = [
    r"^ *(its role must.*)",
    r"panicked at .*\n((?!assertion `left == right` failed$).*)",
    r"^ *(left: .*\n *right: .*)",
    r"^Error: (.*)",
]
TOLD_BY_POLICIES = [r"^Check: (.*)"]
TOLD_BY_VALIDATION = [r"^([EW]\d{4}.*)", r"^(.*Error.*)", r"^(open to.*)"]

# The lines that follow where a bucket is closed to the public, up to the rules that expire its objects.
PRIVATE = """
        IgnorePublicAcls: true
        RestrictPublicBuckets: true
      OwnershipControls:
        Rules:
          - ObjectOwnership: BucketOwnerEnforced
      LifecycleConfiguration:
        Rules:
          """

# Each fault: its name, a text that occurs in the template once, and what replaces it.
FAULTS = [
    ("a tumbling window that Lambda does not offer", "TumblingWindowInSeconds: 60", "TumblingWindowInSeconds: 1000"),
    ("a batching window that Lambda does not offer", "BatchingWindowInSeconds: 3", "BatchingWindowInSeconds: 301"),
    (
        "a response type that does not exist",
        "FunctionResponseTypes: [ReportBatchItemFailures]\n            # A record",
        "FunctionResponseTypes: [ReportBatchItemFailure]\n            # A record",
    ),
    ("an authorizer that nobody defined", "DefaultAuthorizer: AccessToken", "DefaultAuthorizer: AccessTokens"),
    (
        "a view of the console that is open to the world",
        "            Path: /console/views/{view}\n",
        "            Path: /console/views/{view}\n            Auth:\n              Authorizer: NONE\n",
    ),
    (
        "a closed gate that stops the senders",
        "Action: sqs:ReceiveMessage\n              Resource: !GetAtt RequestQueue.Arn",
        "Action: sqs:SendMessage\n              Resource: !GetAtt RequestQueue.Arn",
    ),
    (
        "a second policy of the request queue",
        "      Queues: [!Ref ResultQueue]",
        "      Queues: [!Ref ResultQueue, !Ref RequestQueue]",
    ),
    (
        "cancels that have the limit of amendments",
        "ThrottlingRateLimit: !Ref CancelsPerSecond",
        "ThrottlingRateLimit: !Ref AmendmentsPerSecond",
    ),
    (
        "a queue of the console under another's name",
        "RESULT_DEAD_LETTERS_URL: !Ref ResultDeadLetters",
        "RESULT_DEAD_LETTERS_URL: !Ref RequestDeadLetters",
    ),
    (
        "a client of the feed that reaches webhook endpoints",
        "AllowedOAuthScopes: [payments/feed]",
        "AllowedOAuthScopes: [payments/feed, payments/webhooks]",
    ),
    (
        "an issuer of the bank's own whose machines nobody names",
        '- Assert: !Not [!Equals [!Ref MachineClients, ""]]',
        "- Assert: !Not [!Equals [!Ref Stage, none]]",
    ),
    (
        "a client of the stack that is no machine",
        "[!Ref ChannelClient, !Ref FeedClient, !Ref OperationsClient]], !Ref ChannelClient]\n            - !Ref MachineClients\n"
        "          WEBHOOK_SECRET",
        "[!Ref ChannelClient, !Ref OperationsClient]], !Ref ChannelClient]\n            - !Ref MachineClients\n          WEBHOOK_SECRET",
    ),
    ("a misspelt property of a function", "Timeout: 290", "Timout: 290"),
    ("a misspelt property of an event", "MaximumConcurrency: !Ref", "MaxConcurrency: !Ref"),
    ("a resource that does not exist", "WRITE_SHARDS: !Ref WriteShards", "WRITE_SHARDS: !Ref WriteShard"),
    ("a variable that no function reads", "FEED_BY:", "FEED_AT:"),
    ("an action that a function needs", "dynamodb:ConditionCheckItem, ", ""),
    (
        "an action that a function does not need",
        "Action: [dynamodb:BatchGetItem, dynamodb:DeleteItem]",
        "Action: [dynamodb:BatchGetItem, dynamodb:DeleteItem, dynamodb:PutItem]",
    ),
    ("keys that are another's", "LeadingKeys: [CHECKPOINT#report]", "LeadingKeys: [CHECKPOINT#recount]"),
    ("a resource of all", "Resource: !Sub ${PaymentsTable.Arn}/index/unreported", 'Resource: "*"'),
    ("a transaction that no one statement allows", "dynamodb:ConditionCheckItem, dynamodb:DeleteItem]", "dynamodb:ConditionCheckItem]"),
    (
        "a transaction over two tables that one of them does not allow",
        'LeadingKeys: ["LOG#*", LOG#HEAD, "COUNTS#*", CHECKPOINT#counts]',
        'LeadingKeys: ["LOG#*", LOG#HEAD]',
    ),
    ("a queue that its function cannot empty", "sqs:DeleteMessage, sqs:GetQueueAttributes]", "sqs:GetQueueAttributes]"),
    ("a failure queue that its function cannot write", "Resource: !GetAtt DispatchFailures.Arn", "Resource: !GetAtt RequestQueue.Arn"),
    ("a role that SAM makes", "      Role: !GetAtt SettleRole.Arn\n", ""),
    ("a role of another function", "Role: !GetAtt SettleRole.Arn", "Role: !GetAtt DispatchRole.Arn"),
    ("a log that its function cannot write", "Resource: !GetAtt SettleLog.Arn", "Resource: !GetAtt DispatchLog.Arn"),
    ("a queue that a pause still reads", "Enabled: !If [IsSettling, true, false]", "Enabled: true"),
    ("an alarm that nothing evaluates", "Expression: SUM(FILL(METRICS(), 0))", "Expression: MAX(METRICS())"),
    ("a metric that no function emits", "MetricName: RedriveFailed", "MetricName: RedriveFailures"),
    ("a filter that lets nothing through", '{"S":["PENDING"]}', '{"S":["Pending"]}'),
    ("an index of another name", "IndexName: unreported", "IndexName: not-reported"),
    ("a queue without its dead letters", "deadLetterTargetArn: !GetAtt ResultDeadLetters.Arn", "deadLetterTargetArn: !GetAtt RequestDeadLetters.Arn"),
    ("a stream whose records are given up", "MaximumRetryAttempts: -1", "MaximumRetryAttempts: 5"),
    ("a host name without its API", "      Stage: !Ref PaymentsApi.Stage\n", "      Stage: live\n"),
    ("a host name for everybody", "    Type: AWS::ApiGatewayV2::ApiMapping\n    Condition: HasApiDomain\n", "    Type: AWS::ApiGatewayV2::ApiMapping\n"),
    ("a route of another path", "Path: /accounts/{accountId}/payments/{paymentId}/cancel", "Path: /accounts/{accountId}/payments/{paymentId}/stop"),
    (
        "a journal that could be written over",
        'Resource: !Sub ${ReportsBucket.Arn}/journal/*\n            Condition:\n              "Null":\n                s3:if-none-match: "true"',
        'Resource: !Sub ${ReportsBucket.Arn}/journal/*\n            Condition:\n              "Null":\n                s3:if-none-match: "false"',
    ),
    (
        "reports that their function could write over",
        'Resource: !Sub ${ReportsBucket.Arn}/reports/*\n                Condition:\n                  "Null":\n                    s3:if-none-match: "false"',
        'Resource: !Sub ${ReportsBucket.Arn}/reports/*\n                Condition:\n                  "Null":\n                    s3:if-none-match: "true"',
    ),
    (
        "parts that could be written over",
        'Resource: !Sub ${SealedBucket.Arn}/*\n            Condition:\n              "Null":\n                s3:if-none-match: "true"',
        'Resource: !Sub ${SealedBucket.Arn}/*\n            Condition:\n              "Null":\n                s3:if-none-match: "false"',
    ),
    (
        "parts that their function could write over",
        'Resource: !Sub ${SealedBucket.Arn}/sealed/*\n                Condition:\n                  "Null":\n                    s3:if-none-match: "false"',
        'Resource: !Sub ${SealedBucket.Arn}/sealed/*\n                Condition:\n                  "Null":\n                    s3:if-none-match: "true"',
    ),
    *(
        (f"{what} that could be public", f"BlockPublicPolicy: true{PRIVATE}{begin}", f"BlockPublicPolicy: false{PRIVATE}{begin}")
        for what, begin in [("reports", "- Id: unfinished"), ("attempts of reports", "# Far longer")]
    ),
    (
        "an alarm of a stack that is not monitored",
        "  ApiErrors:\n    Type: AWS::CloudWatch::Alarm\n    Condition: IsMonitored\n",
        "  ApiErrors:\n    Type: AWS::CloudWatch::Alarm\n",
    ),
    ("functions that are traced", "    PropagateTags: true\n    # Text", "    PropagateTags: true\n    Tracing: Active\n    # Text"),
    ("a pool without tags", "      UserPoolTags: {Application: scheduled-payments, Stage: !Ref Stage}\n", ""),
    ("a schedule that is no expression", "ScheduleExpression: rate(1 hour)", "ScheduleExpression: rate(1 hours)"),
]


def built_rules():
    """Builds tests/rules and returns the path of the program."""
    command = ["cargo", "test", "--locked", "--test", "rules", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = map(json.loads, built.splitlines())
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "rules")


def refusal(command, telling, **environment):
    """Returns a command's error message, or None if it succeeds."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode == 0:
        return None
    told = filter(None, (re.search(pattern, done.stdout, re.MULTILINE) for pattern in telling))
    return " ".join(next((match[1] for match in told), done.stdout[-130:]).split()) or "(no message)"


def caught(rules, folder, number, text):
    """Returns the check that rejects a template with this text, and its message; None if none does."""
    file = pathlib.Path(folder, f"template-{number}.yaml")
    file.write_text(text, encoding="utf-8")
    said = refusal([rules, *OF_TEMPLATE], TOLD_BY_RULES, PAYMENTS_TEMPLATE=str(file), RUST_BACKTRACE="0")
    if said:
        return "tests/rules", said
    for check, telling in [(".ci/validate-template.sh", TOLD_BY_VALIDATION), (".ci/check-policies.sh", TOLD_BY_POLICIES)]:
        said = refusal([check, str(file)], telling)
        if said:
            return check, said
    return None


def main():
    template = ROOT.joinpath("template.yaml").read_text(encoding="utf-8")
    texts = [template]
    for name, good, bad in FAULTS:
        if template.count(good) != 1:
            sys.exit(f"{name}: {good!r} is in template.yaml {template.count(good)} times; it must be there once")
        texts.append(template.replace(good, bad))
    if sys.argv[1:] == ["--names"]:
        print("\n".join(name for name, _, _ in FAULTS))
        return
    rules = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else built_rules()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        unchanged, *results = pool.map(lambda it: caught(rules, folder, *it), enumerate(texts))
    if unchanged:
        sys.exit(f"the unchanged template.yaml is rejected: {': '.join(unchanged)}")
    missed = [name for (name, _, _), found in zip(FAULTS, results) if not found]
    for (name, _, _), found in zip(FAULTS, results):
        check, said = found or ("NO CHECK", "")
        print(f"{name}\n    caught by {check}: {said[:130]}")
    if missed:
        sys.exit(f"{len(missed)} of {len(FAULTS)} faults are caught by no check: {', '.join(missed)}")
    print(f"each of {len(FAULTS)} faults is caught")


main()
