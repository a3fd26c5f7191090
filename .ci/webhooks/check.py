"""Verifies the messages of .ci/try-webhooks.sh with the blocks of docs/events.md and with the library, and folds a journal."""

import base64
import datetime
import gzip
import hmac
import json
import pathlib
import sys
import time

vectors_path, folder, golden_path = sys.argv[1:]
vectors = json.loads(pathlib.Path(vectors_path).read_text(encoding="utf-8"))
time.time = lambda: vectors["now"]

# After the clock is set, which they read.
import document  # noqa: E402
import standardwebhooks.webhooks as library  # noqa: E402
from scheduled_payments import WebhookError, verify  # noqa: E402


class Clock(datetime.datetime):
    """The clock of the library."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(vectors["now"], tz)


library.datetime = Clock


def raised(kind, call, *arguments, **named):
    """Returns the exception of a call, or None."""
    try:
        call(*arguments, **named)
    except kind as error:
        return error
    return None


def accepts(secret, headers, body):
    """Whether the library accepts a message."""
    return raised(Exception, library.Webhook(secret).verify, body, headers) is None


for vector in vectors["vectors"]:
    name, error, secrets, headers = (vector[key] for key in ("name", "error", "secrets", "headers"))
    body = vector["body"].encode()
    rejected = raised(WebhookError, document.receive, secrets, headers, body)
    assert (rejected and rejected.kind) == error, f"document: {name}: {rejected!r}"
    if error is None:
        ids = [event["id"] for event in json.loads(body)["events"]]
        assert [event.id for event in document.receive(secrets, headers, body)] == ids, f"document: {name}"
    print(f"ok document: {name}")
    # The library parses JSON, and reads no event.
    accepted = any(accepts(secret, headers, body) for secret in secrets)
    assert accepted == (error in (None, "not-events")), f"library: {name}: accepted is {accepted}"
    print(f"ok library: {name}")

first = vectors["vectors"][0]
secrets, headers, body = first["secrets"], first["headers"], first["body"].encode()
assert len(verify(secrets[0], headers, body)) == 2
later = {"clock": lambda: vectors["now"] + 11.9}
assert raised(WebhookError, verify, secrets, headers, body, 11, **later) is None
assert raised(WebhookError, verify, secrets, headers, body, 10, **later).kind == "too-old"
assert raised(WebhookError, verify, secrets, headers, body, float("nan"), **later).kind == "too-old"
for wrong in ([], "", "whsec_", "whsec_c2hvcnQ=", [*secrets, f"{secrets[0]}%"]):
    error = raised(ValueError, verify, wrong, headers, body)
    assert "secret" in str(error) and "c2hvcnQ" not in str(error), repr(error)
for wrong in (first["body"], json.loads(body), None):
    assert "received bytes" in str(raised(TypeError, verify, secrets, headers, wrong))
# A signature does not make a time of any text.
key = base64.b64decode(secrets[0].removeprefix("whsec_"))
for sent in ("now", "+1796083513", "1796083513.5"):
    signature = base64.b64encode(hmac.digest(key, f"msg_1.{sent}.".encode() + body, "sha256")).decode()
    odd = {"webhook-id": "msg_1", "webhook-timestamp": sent, "webhook-signature": f"v1,{signature}"}
    assert raised(WebhookError, verify, secrets, odd, body).kind == "wrong-signature", sent


def write(path, cursor, following, events):
    """Writes a file of a journal."""
    about = {"journal": 1, "cursor": cursor, "nextCursor": following, "events": len(events)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in (about, *events)).encode()))


def version(epoch, payment, number):
    """Returns an event."""
    return {"id": f"{epoch}-{payment}-{number}", "epoch": epoch, "paymentId": payment, "version": number}


journal = pathlib.Path(folder) / "journal"
other = {"id": "9-irregular-x", "epoch": 9, "type": "payment.irregular"}
for cursor, following, events in (
    ("9.1.0", "9.3.0", [version(9, "a", 1), version(9, "b", 1), version(9, "a", 2)]),
    ("9.3.0", "9.4.0", [version(9, "b", 2), other, version(9, "b", 1)]),
    ("9.4.0", "9.5.0", [version(9, "c", 1)]),
    ("10.1.0", "10.2.0", [version(10, "a", 1)]),
):
    epoch, segment, _ = cursor.split(".")
    write(journal / epoch / f"{int(segment):012}.jsonl.gz", cursor, following, events)
# A file as the bank writes it.
[golden, *_] = json.loads(pathlib.Path(golden_path).read_text(encoding="utf-8"))
path = pathlib.Path(folder) / golden["name"]
path.parent.mkdir(parents=True)
path.write_bytes(base64.b64decode(golden["bytes"]))
folded = {payment: event["id"] for payment, event in document.fold(journal).items()}
assert {payment: folded[payment] for payment in "abc"} == {"a": "10-a-1", "b": "9-b-2", "c": "9-c-1"}, folded
lines = map(json.loads, gzip.decompress(path.read_bytes()).splitlines()[1:])
assert set(folded) - set("abc") == {event["paymentId"] for event in lines if "version" in event}, folded
(journal / "9/000000000003.jsonl.gz").unlink()
assert raised(ValueError, document.fold, journal), "a journal without one of its files"
