// Verifies the messages of .ci/try-webhooks.sh with the block of docs/events.md and with the library.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { WebhookError, verify } from "scheduled-payments";
import { Webhook } from "standardwebhooks";
import { receive } from "./document.mjs";

const { now, vectors } = JSON.parse(readFileSync(process.argv[2], "utf8"));
Date.now = () => now * 1000;

const accepts = (secret, headers, body) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};

/** Returns the exception of a call, or undefined. */
const thrown = (call) => {
  try {
    call();
  } catch (error) {
    return error;
  }
};

for (const { name, error, secrets, headers, body } of vectors) {
  const rejected = thrown(() => receive(secrets, headers, Buffer.from(body)));
  assert(!rejected || rejected instanceof WebhookError, rejected);
  assert.equal(rejected?.kind ?? null, error, `document: ${name}`);
  // As `fetch` and others have them, and as a text.
  for (const others of [new Headers(headers), new Map(Object.entries(headers))]) {
    assert.equal(thrown(() => verify(secrets, others, body))?.kind ?? null, error, `text: ${name}`);
  }
  if (error === null) {
    const ids = JSON.parse(body).events.map(({ id }) => id);
    assert.deepEqual(receive(secrets, headers, Buffer.from(body)).map(({ id }) => id), ids, `document: ${name}`);
  }
  console.log(`ok document: ${name}`);
  // The library parses JSON, and reads no event.
  const accepted = secrets.some((secret) => accepts(secret, headers, body));
  assert.equal(accepted, error === null || error === "not-events", `library: ${name}`);
  console.log(`ok library: ${name}`);
}

const [{ secrets, headers, body }] = vectors;
assert.equal(verify(secrets[0], { ...headers, "x-other": ["a", "b"], "x-absent": undefined }, body).length, 2);
const clock = () => now + 11.9;
assert.equal(verify(secrets, headers, body, { toleranceSeconds: 11, clock }).length, 2);
for (const toleranceSeconds of [10, NaN]) {
  assert.equal(thrown(() => verify(secrets, headers, body, { toleranceSeconds, clock }))?.kind, "too-old");
}
for (const wrong of [[], "", "whsec_", "whsec_c2hvcnQ=", [...secrets, `${secrets[0]}%`]]) {
  const error = thrown(() => verify(wrong, headers, body));
  assert(error instanceof RangeError && error.message.includes("secret") && !error.message.includes("c2hvcnQ"), error);
}
for (const wrong of [JSON.parse(body), null, undefined]) {
  assert.match(String(thrown(() => verify(secrets, headers, wrong))), /TypeError: .*received/);
}
// A signature does not make a time of any text.
const key = Buffer.from(secrets[0].replace("whsec_", ""), "base64");
for (const sent of ["now", "+1796083513", "1796083513.5"]) {
  const signature = createHmac("sha256", key).update(`msg_1.${sent}.${body}`).digest("base64");
  const odd = { "webhook-id": "msg_1", "webhook-timestamp": sent, "webhook-signature": `v1,${signature}` };
  assert.equal(thrown(() => verify(secrets, odd, body))?.kind, "wrong-signature", sent);
}
