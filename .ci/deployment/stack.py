"""The deployed stack and clients for it, and what every part of the deployment's check uses."""

import base64
import gzip
import json
import os
import re
import subprocess
import textwrap
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone

import boto3
from botocore.config import Config

from .template import COPY

COMMANDS = "docs/commands.sh"
STACK = "payments-try"
# The region of programs that are built without AWS's clients.
REGION = "us-east-1"
ACCOUNT = "acc-1"
# Far more than any step takes.
TIMEOUT_SECONDS = 120
# The triggers of the functions, and the values of Paused that leave each on.
SENDING, SETTLING, ALWAYS = ["none"], ["none", "sending"], ["none", "sending", "settling"]
MAPPINGS = {
    "DispatchFunctionBecamePending": SENDING,
    "SettleFunctionReport": SETTLING,
    "StreamAggregatorFunctionHeadChanged": ALWAYS,
}
ON = MAPPINGS | {
    "DailyDueSweeperFunctionSweep": SENDING,
    "DailyDueSweeperFunctionRedrive": SENDING,
    "ReportFunctionReport": SENDING,
    "ArchiveFunctionArchiveBegins": SENDING,
    "ArchiveFunctionArchive": SENDING,
    "SealFunctionSeal": SENDING,
    "RecountFunctionRecount": SENDING,
    "RedateFunctionLookForRedates": ALWAYS,
    "PublishFunctionPublish": ALWAYS,
}
# The emulator's stack in place of the one that the pages deploy.
PRELUDE = f"""
sam() {{ command sam "${{@/#prod/default}}" --template {COPY} --stack-name {STACK} --region {REGION} --resolve-s3 \
  --no-confirm-changeset --no-fail-on-empty-changeset --capabilities CAPABILITY_IAM --no-progressbar; }}
# Version 1 of the command takes payloads as they are, and lacks the option that says so.
aws() {{ local given=(); while [ $# -gt 0 ]; do
  if [ "$1" = --cli-binary-format ]; then shift; else given+=("$1"); fi; shift; done; command aws "${{given[@]}}"; }}
"""



def shell_blocks(page, section):
    """Returns the shell blocks of a section of a page."""
    with open(page, encoding="utf-8") as file:
        text = file.read().split(section, 1)[1]
    text = re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]
    # Blocks within a list are indented.
    blocks = re.findall(r"^( *)```sh\n(.*?)^\1```$", text, flags=re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in blocks]


def commands_of(block):
    """Splits a block into commands, which may have several lines, without the comments between them."""
    commands, open_lines = [], ""
    for line in block.splitlines():
        if not open_lines and line.startswith("#"):
            continue
        open_lines += line + "\n"
        # A line that continues, or a text or substitution that is not closed.
        done = subprocess.run(["bash", "-n", "-c", open_lines], stderr=subprocess.DEVNULL).returncode == 0
        if done and not line.endswith("\\"):
            commands.append(open_lines.strip())
            open_lines = ""
    check(open_lines, "")
    return commands


class Stack:
    """The deployed stack, and clients for it."""

    def __init__(self, url, environment):
        self.environment = environment
        self.prelude = f". '{os.path.abspath(COMMANDS)}' {STACK}\n{PRELUDE}"
        # No retries, which could hide that something happens twice.
        config = Config(retries={"total_max_attempts": 1}, read_timeout=60)
        names = ["cloudformation", "lambda", "sqs", "s3", "scheduler", "dynamodbstreams"]
        common = dict(endpoint_url=url, region_name=REGION, aws_access_key_id="any", aws_secret_access_key="any")
        self.tables = boto3.resource("dynamodb", config=config, **common)
        clients = (boto3.client(n, config=config, **common) for n in names)
        cloudformation, self.functions, self.sqs, self.s3, self.schedules, self.streams = clients
        self.cloudformation = cloudformation
        self.look()

    def look(self):
        """Reads the stack's resources and outputs, which an import changes."""
        resources = self.cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
        self.physical = {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in resources}
        outputs = self.cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]["Outputs"]
        self.outputs = {o["OutputKey"]: o["OutputValue"] for o in outputs}

    def output(self, name):
        return self.outputs[name]

    def create(self, day):
        """Creates a payment that is due on a day."""
        return self.ask("IngestFunction", "POST", "/accounts/{accountId}/payments", self.order(day), accountId=ACCOUNT)

    def cancel(self, payment):
        route = "/accounts/{accountId}/payments/{paymentId}/cancel"
        self.ask("IngestFunction", "POST", route, accountId=ACCOUNT, paymentId=payment)

    @staticmethod
    def order(day):
        return {"payeeAccountId": "acc-2", "amountMinor": 12050, "currency": "GBP", "scheduledFor": day, "data": {}}

    def table(self, name):
        return self.tables.Table(self.output(f"{name}TableName"))

    def files(self, prefix):
        """Returns the names of the bucket's files that begin so."""
        found = self.s3.list_objects_v2(Bucket=self.output("ReportsBucketName"), Prefix=prefix)
        return [it["Key"] for it in found.get("Contents", [])]

    def text_of(self, file):
        """Returns the text of a compressed file of the bucket."""
        return gzip.decompress(self.s3.get_object(Bucket=self.output("ReportsBucketName"), Key=file)["Body"].read()).decode()

    def stream_records(self, name):
        """Returns the records of heads in a table's stream, as the event that Lambda makes of them with a window."""
        arn = self.table(name).latest_stream_arn
        [shard] = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator, records = self.streams.get_shard_iterator(**place)["ShardIterator"], []
        while iterator and (page := self.streams.get_records(ShardIterator=iterator))["Records"]:
            records += [it for it in page["Records"] if it["dynamodb"]["Keys"]["pk"]["S"].startswith("ACCT#")]
            iterator = page.get("NextShardIterator")
        now = datetime.now(timezone.utc)
        return {
            "Records": [as_json(record) | {"eventSourceARN": arn} for record in records],
            "shardId": shard["ShardId"],
            "eventSourceARN": arn,
            "window": {"start": now.isoformat(), "end": (now + timedelta(minutes=1)).isoformat()},
            "state": {},
            "isFinalInvokeForWindow": False,
            "isWindowTerminatedEarly": False,
        }

    def run(self, command, folder=None):
        """Runs a command of a page, as it is written there."""
        # For SQS, the first version of the command line has addresses of its own, which the environment does not override.
        aws = 'aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }\n'
        script = self.prelude + aws + "set -euo pipefail\n" + command
        done = subprocess.run(
            ["bash", "-c", script], env=self.environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{command}\nfailed: {done.stdout}")

    def enabled(self):
        """Returns the mappings and schedules that are on."""
        states = {}
        for name in ON:
            if name in MAPPINGS:
                states[name] = self.functions.get_event_source_mapping(UUID=self.physical[name])["State"]
            else:
                states[name] = self.schedules.get_schedule(Name=self.physical[name])["State"]
        return {name for name, state in states.items() if state.upper() == "ENABLED"}

    def depth(self, queue):
        """Returns how many messages of a queue wait, and how many are received."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
        return tuple(int(attributes[name]) for name in names)

    def invoke(self, function, event):
        answer = self.functions.invoke(FunctionName=self.physical[function], Payload=json.dumps(event).encode())
        payload = json.loads(answer["Payload"].read() or "null")
        if "FunctionError" in answer:
            raise SystemExit(f"{function} failed: {payload}")
        return payload

    def ask(self, function, method, route, body=None, query=None, headers=None, refused=None, **parameters):
        """Sends the event of an HTTP request with a machine's token that has every scope."""
        path = route.format(**parameters)
        scopes = "payments/read payments/write payments/inspect payments/feed payments/webhooks payments/operate"
        claims = {"client_id": self.output("OperationsClientId"), "scope": scopes}
        event = {
            "version": "2.0",
            "routeKey": f"{method} {route}",
            "rawPath": path,
            "rawQueryString": urllib.parse.urlencode(query or {}),
            "headers": {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())} | (headers or {}),
            "requestContext": {
                "authorizer": {"jwt": {"claims": claims, "scopes": None}},
                "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
                "requestId": str(uuid.uuid4()),
                "routeKey": f"{method} {route}",
                "stage": "$default",
            },
            "pathParameters": parameters,
            "isBase64Encoded": False,
        }
        if body is not None:
            event["body"] = json.dumps(body)
        answer = self.invoke(function, event)
        text = answer["body"]
        if answer.get("isBase64Encoded"):
            text = base64.b64decode(text).decode()
        if answer["statusCode"] != refused and answer["statusCode"] >= 300:
            raise SystemExit(f"{method} {path}: {answer['statusCode']} {text}")
        return json.loads(text)

    def receive(self, queue):
        messages = self.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=1).get("Messages", [])
        return messages[0] if messages else None


def as_json(value):
    """Returns a stream's record as Lambda writes it: bytes in base64, times in seconds."""
    if isinstance(value, dict):
        return {name: as_json(it) for name, it in value.items()}
    if isinstance(value, list):
        return [as_json(it) for it in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.timestamp() if isinstance(value, datetime) else value


def check(found, wanted):
    if found != wanted:
        raise SystemExit(f"expected {wanted!r}, found {found!r}")


def wait_until(what, look):
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.5)
    raise SystemExit(f"waited {TIMEOUT_SECONDS} s in vain until {what}")
