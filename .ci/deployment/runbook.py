"""Runs the operators' commands against the deployed stack, as they are written in their pages."""

import os
import re
import tempfile
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from .stack import ACCOUNT, ON, check, commands_of, shell_blocks, wait_until

PAUSE = "docs/operations.md", "\n## Pause and resume\n"
RESTORE = "docs/restore-commands.md", ["\n## Come back from a restore\n", "\n## Without log and journal\n"]
# Steps that only AWS can do, or that are tested elsewhere: blocks of the restore that contain these are not run.
ONLY_AWS = ["log_epoch", "apigatewayv2", "update()", "HistoryTableClass", "import_table", "change-set", "start-query"]


def pause_and_resume(stack):
    """Runs every command of the section that pauses, and checks what each leaves on."""
    on, ran = set(ON), 0
    for block in shell_blocks(*PAUSE):
        for command in commands_of(block):
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

    page, sections = RESTORE
    blocks = [block for section in sections for block in shell_blocks(page, section)]
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
    print(f"cancelled again after a restore: {len(blocks)} blocks of {page} do what they say, in {seconds} s")
