"""Deploys the template with `sam deploy` to an emulator of AWS on this machine, and takes a payment through
its life there.

Usage: python3 .ci/try-deployment.py SERVER AWS, after `sam build` for this machine's processor, with sam and its
python3 first on PATH. SERVER is ministack's program, and AWS the folder of the aws command. Both have their own virtual
environments.

Tested: the roles, functions and their variables, both tables with their indexes, the queues, the stream and
queue mappings, the report's bucket; every command of docs/runbook.md that pauses or resumes, as it is written there, and
that a disabled mapping leaves its queue alone; the commands that make lists and cancel after a restore without log and journal. Not tested, because the emulator lacks them or differs: alarms
over several metrics (the deployed copy leaves them out), routes and authorizer of the HTTP API, partial batch failures of streams, tumbling windows (so not the counters), time to live, permissions.
"""

import base64
import gzip
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import boto3
from botocore.config import Config
from samcli.yamlhelper import yaml_dump, yaml_parse

ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"
BUILT = ".aws-sam/build/template.yaml"
# Beside the original, because paths of the programs are relative to it.
COPY = BUILT.replace("template", "template-of-emulator")
RUNBOOK = "docs/runbook.md"
PAUSE, RESTORE = "\n### Pause and resume\n", ["\n### Come back from a restore\n", "\n### Without log and journal\n"]
# What only AWS can do, or is tested elsewhere: blocks of the restore that contain these are not run.
ONLY_AWS = ["log_epoch", "apigatewayv2", "update()", "HistoryTableClass", "import_table", "change-set", "start-query"]
STACK = "payments-try"
REGION = "eu-west-2"
ACCOUNT = "acc-1"
TRANSACTION = "TX-1"
# Far more than any step takes.
TIMEOUT_SECONDS = 120
# Longer than a mapping that is enabled takes to receive a message.
UNTOUCHED_SECONDS = 5
# What invokes the functions, and the values of Paused that leave it on.
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
    "RecountFunctionRecount": SENDING,
    "RedateFunctionLookForRedates": ALWAYS,
    "PublishFunctionPublish": ALWAYS,
}
# The emulator's stack in place of the one that the runbook deploys.
PRELUDE = f"""
sam() {{ command sam "${{@/#prod/default}}" --template {COPY} --stack-name {STACK} --region {REGION} --resolve-s3 \
  --no-confirm-changeset --no-fail-on-empty-changeset --capabilities CAPABILITY_IAM --no-progressbar; }}
STACK={STACK}
# Version 1 of the command takes payloads as they are, and lacks the option that says so.
aws() {{ local given=(); while [ $# -gt 0 ]; do
  if [ "$1" = --cli-binary-format ]; then shift; else given+=("$1"); fi; shift; done; command aws "${{given[@]}}"; }}
"""


def main(server, aws):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = dict(
        os.environ,
        AWS_ENDPOINT_URL=url,
        AWS_ACCESS_KEY_ID="any",
        AWS_SECRET_ACCESS_KEY="any",
        AWS_DEFAULT_REGION=REGION,
        AWS_REGION=REGION,
        SAM_CLI_TELEMETRY="0",
    )
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/emulator.log", "w+") as log:
        emulator = subprocess.Popen(
            [server],
            env=dict(
                environment,
                GATEWAY_PORT=str(port),
                BIND_HOST="127.0.0.1",
                LAMBDA_EXECUTOR="local",
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                TMPDIR=folder,
            ),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until("the emulator listens", lambda: listens(port) or gone(emulator))
            deploy(environment)
            environment["PATH"] += os.pathsep + aws
            stack = Stack(url, environment)
            pause_and_resume(stack)
            live(stack)
            come_back(stack)
        except BaseException:
            log.seek(0)
            print("".join(log.readlines()[-60:]), file=sys.stderr)
            raise
        finally:
            emulator.terminate()
            emulator.wait(timeout=30)


def deploy(environment):
    with open(BUILT, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    resources = template["Resources"]
    left_out = [name for name, it in resources.items() if "Metrics" in it.get("Properties", {})]
    for name in left_out:
        del resources[name]
    # The emulator keeps a parameter's value as text, and its poller compares it with a number.
    results = resources["SettleFunction"]["Properties"]["Events"]["Report"]["Properties"]
    results["ScalingConfig"]["MaximumConcurrency"] = template["Parameters"]["SettleConcurrency"]["Default"]
    # The emulator is slow, and each shard is a query.
    for name in ("ReadShards", "WriteShards"):
        template["Parameters"][name]["Default"] = 4
    with open(COPY, "w", encoding="utf-8") as file:
        file.write(yaml_dump(template))
    command = ["sam", "deploy", "--template", COPY, "--stack-name", STACK, "--region", REGION, "--resolve-s3"]
    command += ["--no-confirm-changeset", "--capabilities", "CAPABILITY_IAM", "--no-progressbar"]
    command += ["--parameter-overrides", f"Stage=dev Architecture={ARCHITECTURE}"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    print(f"sam deploy: the stack is there, without {', '.join(left_out)}")


def shell_blocks(section):
    """Returns the shell blocks of a section of the runbook; its opening has the names that all of them use."""
    with open(RUNBOOK, encoding="utf-8") as file:
        text = file.read()
    text = text.split(section, 1)[1] if section else text
    text = re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]
    # Blocks within a list are indented.
    blocks = re.findall(r"^( *)```sh\n(.*?)^\1```$", text, flags=re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in blocks]


def commands_of(block):
    """Splits a block into commands, which may have several lines."""
    commands, open_lines = [], ""
    for line in block.splitlines():
        open_lines += line + "\n"
        # A line that goes on, or a text or substitution that is not closed.
        done = subprocess.run(["bash", "-n", "-c", open_lines], stderr=subprocess.DEVNULL).returncode == 0
        if done and not line.endswith("\\"):
            commands.append(open_lines.strip())
            open_lines = ""
    check(open_lines, "")
    return commands


def pause_and_resume(stack):
    """Runs every command of the runbook's section, and checks what each leaves on."""
    on, ran = set(ON), 0
    for block in shell_blocks(PAUSE):
        functions = ""
        for command in commands_of(block):
            if re.match(r"\w+\(\)", command):
                functions += command + "\n"
                continue
            if paused := re.search(r"Paused=(\w+)", command):
                on = {name for name, values in ON.items() if paused[1] in values}
            else:
                _, name, how = command.split("#")[0].split()
                # The mapping of the webhooks is off in this stack, as by default: its commands only have to succeed.
                if name in ON:
                    on = on | {name} if how in ("--enabled", "ENABLED") else on - {name}
            stack.run(functions + command)
            wait_until(f"{command} is done", lambda: stack.enabled() == on)
            ran += 1
    check(on, set(ON))
    print(f"paused and resumed: {ran} commands of {RUNBOOK} do what they say")


def live(stack):
    """Takes a payment through its life, and checks the result of each step."""
    today = datetime.now(ZoneInfo("Europe/London")).date().isoformat()
    created = stack.create(today)
    payment = created["paymentId"]
    check(created["status"], "SCHEDULED")
    print(f"created: payment {payment}, due today")

    def shown():
        route = "/accounts/{accountId}/payments/{paymentId}"
        return stack.ask("QueryAccountFunction", "GET", route, accountId=ACCOUNT, paymentId=payment)

    check(shown()["status"], "SCHEDULED")
    check(stack.invoke("DailyDueSweeperFunction", {"action": "sweep"})["claimed"], 1)
    check(shown()["status"], "PENDING")
    print("claimed: it is pending")

    requests = stack.output("RequestQueueUrl")
    received = wait_until("dispatch sends it", lambda: stack.receive(requests))
    sent = json.loads(received["Body"])
    check((sent["paymentId"], sent["amountMinor"], sent["dispatchAttempt"]), (payment, 12050, 1))
    print("dispatched, by the stream: the transaction service has its request")

    result = {"v": 1, "kind": "settlement", "paymentId": payment, "amountMinor": 12050, "currency": "GBP", "outcome": "PROCESSED", "transactionId": TRANSACTION}
    _, by_hand, *_ = shell_blocks(PAUSE)
    mapping, *commands = commands_of(by_hand)
    disable, enable = (next(c for c in commands if c.startswith(f"mapping SettleFunctionReport --{how}")) for how in ("no-enabled", "enabled"))
    stack.run(mapping + "\n" + disable)
    stack.sqs.send_message(QueueUrl=stack.output("ResultQueueUrl"), MessageBody=json.dumps(result))
    time.sleep(UNTOUCHED_SECONDS)
    check((shown()["status"], stack.depth(stack.output("ResultQueueUrl"))), ("PENDING", (1, 0)))
    print("paused by hand: its result waits, and nobody receives it")
    stack.run(mapping + "\n" + enable)
    wait_until("it is settled", lambda: shown()["status"] == "PROCESSED")
    print("settled, by the queue: it is processed")

    found = stack.ask("QueryDueFunction", "GET", "/payments", query={"transactionId": TRANSACTION})
    check([row["paymentId"] for row in found["payments"]], [payment])
    report = stack.invoke("ReportFunction", {"action": "report"})
    check((report["reported"], report["drained"]), (1, 1))
    file = next(name for name in report["published"] if name.endswith(".csv.gz"))
    rows = stack.s3.get_object(Bucket=stack.output("ReportsBucketName"), Key=file)["Body"].read()
    check(payment in gzip.decompress(rows).decode(), True)
    print("found by its transaction; reported to the bucket, in " + file)
    runs = [("ArchiveFunction", "archive"), ("RecountFunction", "recount"), ("RedateFunction", "look"), ("PublishFunction", "publish")]
    for name, action in runs:
        stack.invoke(name, {"action": action})
    print("archive, recount, redate and publish ran")


def come_back(stack):
    """Makes the stack's hot table one that was restored, and runs the commands that cancel what the old one has cancelled."""
    begun, today = time.monotonic(), datetime.now(ZoneInfo("Europe/London")).date()
    hot, history = (stack.tables.Table(stack.output(f"{name}TableName")) for name in ("Payments", "History"))
    old = stack.table_like(hot, "payments-old")
    days = (today + timedelta(1), today + timedelta(2))
    cancelled, later = (stack.create(day.isoformat())["paymentId"] for day in days)
    head_of = {head["sk"].split("#")[1]: head for head in hot.scan()["Items"] if head["pk"] == f"ACCT#{ACCOUNT}"}
    due = head_of[cancelled]["due"].replace("SCHEDULED", "CANCELLED")
    old.put_item(Item=head_of[cancelled] | {"status": "CANCELLED", "due": due})
    old.put_item(Item=head_of[later])

    blocks = [block for section in RESTORE for block in shell_blocks(section)]
    blocks = [block for block in blocks if not any(word in block for word in ONLY_AWS)]
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath("events"), f"{folder}/events")
        with open(f"{folder}/old-tables-1.txt", "w", encoding="utf-8") as file:
            file.write(f"{old.name} {history.name}\n")
        stack.run("\n".join(blocks), folder)
        with open(f"{folder}/cancelled-since.txt", encoding="utf-8") as file:
            check([line.split("#")[-1].strip() for line in file], [cancelled])

    statuses = {}
    for payment in (cancelled, later):
        key = {name: head_of[payment][name] for name in ("pk", "sk")}
        statuses[payment] = hot.get_item(Key=key)["Item"]["status"]
    check(statuses, {cancelled: "CANCELLED", later: "SCHEDULED"})
    seconds = round(time.monotonic() - begun)
    print(f"cancelled again after a restore: {len(blocks)} blocks of {RUNBOOK} do what they say, in {seconds} s")


class Stack:
    """The deployed stack, and clients for it."""

    def __init__(self, url, environment):
        self.environment = environment
        [opening] = shell_blocks("")[:1]
        self.prelude = opening + PRELUDE
        # No retries, which could hide that something happens twice.
        config = Config(retries={"total_max_attempts": 1}, read_timeout=60)
        names = ["cloudformation", "lambda", "sqs", "s3", "scheduler"]
        common = dict(endpoint_url=url, region_name=REGION, aws_access_key_id="any", aws_secret_access_key="any")
        self.tables = boto3.resource("dynamodb", config=config, **common)
        clients = (boto3.client(n, config=config, **common) for n in names)
        cloudformation, self.functions, self.sqs, self.s3, self.schedules = clients
        resources = cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
        self.physical = {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in resources}
        outputs = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]["Outputs"]
        self.outputs = {o["OutputKey"]: o["OutputValue"] for o in outputs}

    def output(self, name):
        return self.outputs[name]

    def create(self, day):
        """Creates a payment that is due on a day."""
        order = {"payeeAccountId": "acc-2", "amountMinor": 12050, "currency": "GBP", "scheduledFor": day, "data": {}}
        return self.ask("IngestFunction", "POST", "/accounts/{accountId}/payments", order, accountId=ACCOUNT)

    def table_like(self, table, name):
        """Creates an empty table with the keys and indexes of another."""
        indexes = [{key: index[key] for key in ("IndexName", "KeySchema", "Projection")} for index in table.global_secondary_indexes]
        return self.tables.create_table(
            TableName=name,
            KeySchema=table.key_schema,
            AttributeDefinitions=table.attribute_definitions,
            GlobalSecondaryIndexes=indexes,
            BillingMode="PAY_PER_REQUEST",
        )

    def run(self, command, folder=None):
        """Runs a command of the runbook, as it is written there."""
        script = self.prelude + "set -euo pipefail\n" + command
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

    def ask(self, function, method, route, body=None, query=None, **parameters):
        """Sends the event of an HTTP request with a machine's token that has every scope."""
        path = route.format(**parameters)
        scopes = "payments/read payments/write payments/inspect payments/feed payments/webhooks payments/operate"
        claims = {"client_id": self.physical["OperationsClient"], "scope": scopes}
        event = {
            "version": "2.0",
            "routeKey": f"{method} {route}",
            "rawPath": path,
            "rawQueryString": urllib.parse.urlencode(query or {}),
            "headers": {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())},
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
        if answer["statusCode"] >= 300:
            raise SystemExit(f"{method} {path}: {answer['statusCode']} {text}")
        return json.loads(text)

    def receive(self, queue):
        messages = self.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=1).get("Messages", [])
        return messages[0] if messages else None


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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def gone(process):
    if process.poll() is not None:
        raise SystemExit(f"the emulator ended with {process.returncode}")
    return False


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
