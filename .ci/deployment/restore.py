"""Loses the deployed stack's tables, and brings the stack back with the commands of `cargo restore`.

The emulator restores a table as it is now. So this test takes from the restored table what one of an earlier instant would lack.
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from .stack import ACCOUNT, ON, STACK, check, wait_until

# The emulator's backups have a window of no length, its restored tables do not say what they were restored from, and nobody
# waits here until a deployment is a quarter of an hour old. sam builds the folder's template with the functions that are built already.
AWS = """#!/bin/sh
case "$*" in
  *describe-continuous-backups*) "{aws}" "$@" | sed -E 's/("EarliestRestorableDateTime": )[0-9.]+/\\11600000000/' ;;
  *restore-table-to-point-in-time*)
    source=$("{aws}" dynamodb describe-table --table-name "$4" --query Table.TableArn)
    printf '"RestoreSummary": {{"SourceTableArn": %s, "RestoreDateTime": "%s"}},' "$source" \\
      "${{8:-$(date -u +%Y-%m-%dT%H:%M:%SZ)}}" > "{folder}/$6.summary"
    exec "{aws}" "$@" ;;
  "dynamodb describe-table --table-name {stack}-restored-"*)
    summary="{folder}/$4.summary"
    [ $# = 4 ] && [ -e "$summary" ] || exec "{aws}" "$@"
    "{aws}" "$@" | sed 's|"Table": {{|&'"$(cat "$summary")"'|' ;;
  *get-stage*) "{aws}" "$@" | sed -E 's/("LastUpdatedDate": ")[^"]+/\\12020-01-01T00:00:00Z/' ;;
  *describe-stack-events*) echo '"2020-01-01T00:00:00Z"' ;;
  *) exec "{aws}" "$@" ;;
esac
"""
SAM = """#!/bin/sh
exec "{python}" "{script}" "{sam}" "$@"
"""


class Operator:
    """Runs `cargo restore` in a folder of its own."""

    def __init__(self, stack, program, folder):
        self.stack, self.program, self.folder = stack, program, folder
        tools = f"{folder}/bin"
        os.mkdir(tools)
        find = lambda name: subprocess.run(
            ["which", name], env=stack.environment, capture_output=True, text=True, check=True
        ).stdout.strip()
        script = os.path.abspath(f"{os.path.dirname(__file__)}/sam.py")
        for name, text in (
            ("aws", AWS.format(aws=find("aws"), folder=tools, stack=STACK)),
            ("sam", SAM.format(python=sys.executable, script=script, sam=find("sam"))),
        ):
            with open(f"{tools}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(f"{tools}/{name}", 0o755)
        self.environment = dict(stack.environment, REPOSITORY=os.getcwd())
        self.environment["PATH"] = tools + os.pathsep + self.environment["PATH"]

    def ask(self, *arguments, refused=None):
        """Runs a command, which must succeed, or be refused with this text."""
        command = [self.program, *arguments, "--endpoint", self.environment["AWS_ENDPOINT_URL"]]
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if (done.returncode != 0) != bool(refused) or (refused or "") not in said:
            raise SystemExit(f"cargo restore {' '.join(arguments)}: {said}")
        return said

    def do(self, *arguments):
        """Shows a command's steps, which changes nothing, and does them. Nothing is left to do then."""
        shown = self.ask(*arguments)
        self.ask(*arguments, "--apply")
        left = self.ask(*arguments)
        if "Nothing is left to do." not in left:
            raise SystemExit(f"cargo restore {' '.join(arguments)} is not done: {left}")
        return shown.count("[to do]")

    def git(self, *arguments):
        command = ["git", "-c", "user.name=operator", "-c", "user.email=operator@localhost", *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)


def come_back(stack, program):
    """Loses a cancel and a payment, and runs every command in the order of docs/restore.md."""
    begun, today = time.monotonic(), datetime.now(ZoneInfo("Europe/London")).date()
    days = (today + timedelta(day) for day in (1, 2, 3))
    cancelled, later, logged = (stack.create(day.isoformat())["paymentId"] for day in days)
    stack.invoke("StreamAggregatorFunction", stack.stream_records("Payments"))
    hot = stack.table("Payments")
    # The emulator ignores the template's backups.
    for table in (hot, stack.table("History")):
        stack.run(f"aws dynamodb update-continuous-backups --table-name {table.name} --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true")
    key_of = {it["sk"].split("#")[1]: {"pk": it["pk"], "sk": it["sk"]} for it in hot.scan()["Items"] if it["pk"] == f"ACCT#{ACCOUNT}"}
    with tempfile.TemporaryDirectory() as folder:
        operator, steps = Operator(stack, program, folder), 0
        subprocess.run(["cp", "template.yaml", folder], check=True)
        operator.git("init", "--quiet")
        operator.git("add", "template.yaml")
        operator.git("commit", "--quiet", "--message", "The deployed template")
        to = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        steps += operator.do("start", "--stack", STACK, "--to", to, "--history")
        operator.ask("close", refused="expected \"settling\"")
        stack.run("sam deploy --config-env prod --parameter-overrides Paused=settling")
        on = {name for name, values in ON.items() if "settling" in values}
        wait_until("the stack is paused", lambda: stack.enabled() == on)
        operator.ask("tables", refused="close the API first")
        steps += operator.do("close")
        operator.ask("tables", "--apply", refused="the log takes changes")
        operator.ask("begin", "--apply")
        steps += operator.do("tables")
        new_hot, new_history = (stack.tables.Table(f"{STACK}-restored-{name}-1") for name in ("hot", "history"))
        # The cancel is not in the log, which has ended; the creation of the other payment is.
        stack.cancel(cancelled)
        new_hot.delete_item(Key=key_of[logged])
        endpoint = {"pk": "WEBHOOK#ENDPOINTS", "sk": "books"}
        new_history.put_item(Item=endpoint)
        steps += operator.do("endpoints")
        check("disabledAt" in new_history.get_item(Key=endpoint)["Item"], True)
        new_history.delete_item(Key=endpoint)
        steps += operator.do("files")
        # The log of this stack is younger than an hour.
        operator.ask("rebuild", "--apply", refused="give --accept-gaps")
        operator.do("rebuild", "--accept-gaps")
        # The first run has noted its choices.
        operator.ask("rebuild", "--apply")
        operator.ask("finish", "--apply")
        steps += operator.do("template")
        operator.ask("changes", refused="an uncommitted change")
        operator.git("commit", "--quiet", "--all", "--message", "The stack uses the restored tables")
        operator.ask("import", refused="make it first")
        steps += operator.do("changes")
        steps += operator.do("import")
        stack.look()
        check(stack.output("PaymentsTableName"), new_hot.name)
        check(stack.output("HistoryTableName"), new_history.name)
        steps += operator.do("resume")
        steps += operator.do("open")
        listed = operator.ask("cancel")
        check((cancelled in listed, later in listed), (True, False))
        steps += operator.do("cancel")
        steps += operator.do("open", "--all")
    statuses = {name: new_hot.get_item(Key=key_of[name])["Item"]["status"] for name in (cancelled, later, logged)}
    check(statuses, {cancelled: "CANCELLED", later: "SCHEDULED", logged: "SCHEDULED"})
    seconds = round(time.monotonic() - begun)
    print(f"came back from a restore: {steps} steps of cargo restore, shown, done and asked again, in {seconds} s")
