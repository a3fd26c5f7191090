"""Takes a payment through its life on the deployed stack: created, amended, claimed, settled, reported, counted, archived."""

import gzip
import json
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from .runbook import PAUSE, with_resume
from .stack import ACCOUNT, check, commands_of, shell_blocks, wait_until

TRANSACTION = "TX-1"
# Longer than a mapping that is enabled takes to receive a message.
UNTOUCHED_SECONDS = 5
PAYMENT = "/accounts/{accountId}/payments/{paymentId}"
ENDPOINT = "/webhook-endpoints/{endpointId}"


def live(stack):
    """Takes a payment through its life, and checks the result of each step."""
    today = datetime.now(ZoneInfo("Europe/London")).date()
    payment = create_and_amend(stack, today.isoformat())
    cancelled = cancel_one(stack, today.isoformat())
    claim(stack, payment)
    settle(stack, payment)
    report(stack, payment)
    refuse_this_machine(stack)
    count(stack, today.isoformat())
    publish(stack, payment)
    archive(stack, payment, cancelled, today - timedelta(3))
    stack.invoke("RedateFunction", {"action": "look"})
    print("redate looked for what to move")


def shown(stack, payment):
    return stack.ask("QueryAccountFunction", "GET", PAYMENT, accountId=ACCOUNT, paymentId=payment)


def create_and_amend(stack, today):
    created = stack.create(today)
    payment = created["paymentId"]
    check(created["status"], "SCHEDULED")
    changed = stack.order(today) | {"amountMinor": 13050}
    headers = {"if-match": f'"{created["version"]}"'}
    stack.ask("IngestFunction", "PUT", PAYMENT, changed, headers=headers, accountId=ACCOUNT, paymentId=payment)
    now = shown(stack, payment)
    check((now["status"], now["amountMinor"], now["version"]), ("SCHEDULED", 13050, 2))
    print(f"created and amended: payment {payment}, due today")
    return payment


def cancel_one(stack, today):
    payment = stack.create(today)["paymentId"]
    stack.cancel(payment)
    check(shown(stack, payment)["status"], "CANCELLED")
    return payment


def head_of(hot, payment):
    [head] = [it for it in hot.scan()["Items"] if it["pk"] == f"ACCT#{ACCOUNT}" and it["sk"].endswith(payment)]
    return head


def claim(stack, payment):
    check(stack.invoke("DailyDueSweeperFunction", {"action": "sweep"})["claimed"], 1)
    check(shown(stack, payment)["status"], "PENDING")
    requests = stack.output("RequestQueueUrl")
    received = wait_until("dispatch sends it", lambda: stack.receive(requests))
    sent = json.loads(received["Body"])
    check((sent["paymentId"], sent["amountMinor"], sent["dispatchAttempt"]), (payment, 13050, 1))
    print("claimed, and dispatched by the stream: the transaction service has its request")


def settle(stack, payment):
    result = {"v": 1, "kind": "settlement", "paymentId": payment, "amountMinor": 13050, "currency": "GBP", "payeeAccountId": "acc-2", "status": "PROCESSED", "transactionId": TRANSACTION}
    results = stack.output("ResultQueueUrl")
    by_hand, *_ = shell_blocks(*PAUSE)
    commands = list(with_resume(commands_of(by_hand)))
    disable, enable = (next(c for c in commands if c.startswith(f"mapping SettleFunctionReport --{how}")) for how in ("no-enabled", "enabled"))
    stack.run(disable)
    stack.sqs.send_message(QueueUrl=results, MessageBody=json.dumps(result))
    time.sleep(UNTOUCHED_SECONDS)
    check((shown(stack, payment)["status"], stack.depth(results)), ("PENDING", (1, 0)))
    print("paused by hand: its result waits, and nobody receives it")
    stack.run(enable)
    wait_until("it is settled", lambda: shown(stack, payment)["status"] == "PROCESSED")
    found = stack.ask("QueryDueFunction", "GET", "/payments", query={"transactionId": TRANSACTION})
    check([row["paymentId"] for row in found["payments"]], [payment])
    print("settled, by the queue: it is processed, and found by its transaction")


def report(stack, payment):
    outcome = stack.invoke("ReportFunction", {"action": "report"})
    check((outcome["reported"], outcome["drained"]), (1, 1))
    file = next(name for name in outcome["published"] if name.endswith(".csv.gz"))
    check(payment in stack.text_of(file), True)
    print("reported to the bucket, in " + file)


def archive(stack, payment, cancelled, day):
    """The settled head expires, which the emulator leaves to us. A copy of the cancelled one that was due on an earlier day is moved:
    the archive leaves alone what is due today."""
    hot, history = stack.table("Payments"), stack.table("History")
    head, settled = head_of(hot, cancelled), head_of(hot, payment)
    slot = f"{day}T00:00:00Z#{cancelled}"
    hot.put_item(Item=head | {"sk": slot, "due": f"CANCELLED#{day}#{slot}"})
    earlier = {"pk": head["pk"], "sk": slot}
    check("expires_at" in settled, True)
    hot.delete_item(Key={"pk": settled["pk"], "sk": settled["sk"]})
    check(shown(stack, payment)["status"], "PROCESSED")
    check(stack.invoke("ArchiveFunction", {"action": "archive"})["archived"], 1)
    check(("Item" in hot.get_item(Key=earlier), "Item" in history.get_item(Key=earlier)), (False, True))
    print("archived: the settled payment is shown from the long-term table, and the cancelled one was moved to it")


def refuse_this_machine(stack):
    """A deployed stack sends nothing to itself, encrypted or not."""
    for url in ("http://127.0.0.1:9/events", "https://127.0.0.1/events", "https://localhost/events"):
        refused = stack.ask("WebhooksFunction", "PUT", ENDPOINT, {"url": url}, refused=422, endpointId="books")
        check(refused["type"], "urn:scheduled-payments:problem:invalid-url")
    check(stack.ask("WebhooksFunction", "GET", "/webhook-endpoints")["endpoints"], [])
    print("webhooks to this machine are refused")


def count(stack, today):
    """Hands the stream's records to the function, whose mapping has no window here, and once more: none counts twice."""
    records = stack.stream_records("Payments")
    for _ in range(2):
        stack.invoke("StreamAggregatorFunction", records)
    [counts] = stack.ask("QueryDueFunction", "GET", "/counts", query={"from": today, "to": today})["counts"]
    by_status = {status: number for status, number in counts["byStatus"].items() if number}
    check((counts["total"], by_status), (2, {"CANCELLED": 1, "PROCESSED": 1}))
    outcome = stack.invoke("RecountFunction", {"action": "recount"})
    check((outcome["drifted"], outcome["unparsedChanges"]), (0, 0))
    print(f"counted: {len(records['Records'])} changes, given twice; a recount finds no drift in {outcome['exact']} dates")


def publish(stack, payment):
    page = stack.ask("QueryDueFunction", "GET", "/events")
    own = [event["type"] for event in page["events"] if event.get("paymentId") == payment]
    check(own, [f"payment.{what}" for what in ("scheduled", "amended", "pending", "processed")])
    stack.invoke("PublishFunction", {"action": "publish"})
    [file] = wait_until("the journal has a file", lambda: stack.files("journal/"))
    check(all(event["id"] in stack.text_of(file) for event in page["events"]), True)
    print(f"published: {len(page['events'])} events of the log are in {file}")
