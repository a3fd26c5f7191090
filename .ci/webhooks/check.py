"""Verifies the cases of .ci/try-webhooks.sh with the blocks of docs/events.md and with the library, and folds a journal."""

import json
import os
import sys

import document
from standardwebhooks import Webhook

folder = sys.argv[1]
with open(f"{folder}/cases.jsonl", encoding="utf-8") as lines:
    cases = [json.loads(line) for line in lines]


def accepts(verify):
    try:
        verify()
    except Exception:
        return False
    return True


for case in cases:
    secret, headers, body = case["secret"], case["headers"], case["body"].encode()
    for who, verify in {
        "document": lambda: document.verify(secret, headers, body),
        "library": lambda: Webhook(secret).verify(body, headers),
    }.items():
        accepted = accepts(verify)
        assert accepted == case["accepted"], f"{who}: {case['name']}: accepted is {accepted}"
        print(f"ok {who}: {case['name']}")

folded = document.fold(f"{folder}/journal")
assert {payment: event["id"] for payment, event in folded.items()} == {"a": "10-a-1", "b": "9-b-2", "c": "9-c-1"}, folded
os.remove(f"{folder}/journal/9/000000000003.jsonl.gz")
assert not accepts(lambda: document.fold(f"{folder}/journal")), "a journal without one of its files"
