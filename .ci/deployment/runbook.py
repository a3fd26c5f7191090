"""Runs the operators' commands that pause and resume, and those of the gate, against the deployed stack, as their page has them."""

import json
import re

from .stack import ON, check, commands_of, shell_blocks, wait_until

PAUSE = "docs/operations.md", "\n## Pause and resume\n"
GATE = "docs/operations.md", "\n## Close the gate\n"
# A transaction service in another account.
SERVICE = "arn:aws:iam::111122223333:role/transaction-service"


def with_resume(commands):
    """Yields each command and, after one that disables, the same with the word that enables."""
    for command in commands:
        yield command
        resume = command.replace("--no-enabled", "--enabled").replace("DISABLED", "ENABLED")
        if resume != command:
            yield resume


def pause_and_resume(stack):
    """Runs every command of the section, and the one that resumes what it paused. Checks what each leaves on."""
    on, ran = set(ON), 0
    for block in shell_blocks(*PAUSE):
        for command in with_resume(commands_of(block)):
            if paused := re.search(r"Paused=(\w+)", command):
                on = {name for name, values in ON.items() if paused[1] in values}
            else:
                _, name, how = command.split("#")[0].split()
                # The mapping of the webhooks is off in this stack, as by default: its commands only have to succeed.
                if name in ON:
                    on = on | {name} if how in ("--enabled", "ENABLED") else on - {name}
            stack.run(command)
            wait_until(f"{command} is done", lambda: stack.enabled() == on)
            ran += 1
    check(on, set(ON))
    print(f"paused and resumed: {ran} commands of {PAUSE[0]} do what they say")


def close_and_open_the_gate(stack):
    """Runs every command of the gate, and checks the policy of the request queue after each: the service's Allow stays."""
    queue = stack.output("RequestQueueUrl")

    def attribute(name):
        found = stack.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=[name])["Attributes"]
        return found.get(name)

    arn = attribute("QueueArn")
    encrypted = {
        "Sid": "OnlyEncryptedConnections",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    actions = ["ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes"]
    allowed = {
        "Sid": "TransactionServiceTakesRequests",
        "Effect": "Allow",
        "Principal": {"AWS": SERVICE},
        "Action": [f"sqs:{action}" for action in actions],
        "Resource": arn,
    }
    denied = {
        "Sid": "GateIsClosed",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:ReceiveMessage",
        "Resource": arn,
    }
    statements = {"open": [encrypted, allowed], "closed": [encrypted, allowed, denied]}

    def check_policy(gate):
        check(json.loads(attribute("Policy")), {"Version": "2012-10-17", "Statement": statements[gate]})

    check_policy("open")
    ran = []
    for block in shell_blocks(*GATE):
        for command in commands_of(block):
            gate = re.search(r"(?:gate |RequestGate=)(\w+)", command)[1]
            stack.run(command)
            check_policy(gate)
            ran.append(gate)
    check(ran, ["closed", "closed", "open", "open"])
    # A deployment alone does the same.
    for gate in ("closed", "open"):
        stack.run(f"sam deploy --config-env prod --parameter-overrides RequestGate={gate}")
        check_policy(gate)
    print(f"the gate was closed and opened, by {len(ran)} commands and by deployments alone: the policy has the texts that it should")
