// Checks of webhook endpoints at the running bank.

import { strict as assert } from "node:assert";
import { type Event, type EventPage, type WebhookEndpointOrder, verify } from "scheduled-payments";
import { type Answer, type Fake, poll, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { BANK, problemOf } from "./world.js";

const ENDPOINTS = BANK.webhookEndpoints;
const ACCEPTED: Answer = { status: 204, body: "" };

/** Returns the events of a request, once it has arrived. */
async function events(fake: Fake, number: number, secret: string): Promise<Event[]> {
  await poll(() => fake.seen.length > number);
  const seen = fake.seen[number];
  assert(seen);
  return verify(secret, seen.headers, seen.body);
}

async function secretOf(endpointId: string): Promise<string> {
  const [secret] = await ENDPOINTS.secrets(endpointId);
  assert(secret);
  equal([secret.generation, secret.until], [1, undefined]);
  return secret.secret;
}

check("endpoint-put", async () => {
  const url = "http://127.0.0.1:9/a";
  const order: WebhookEndpointOrder = { url, types: ["payment.failed"], accounts: ["ts-1"], enabled: false };
  equal((await ENDPOINTS.put("ts-put", order)).created, true);
  const { endpoint, created } = await ENDPOINTS.put("ts-put", order);
  equal([created, endpoint.url, endpoint.types, endpoint.accounts], [false, url, order.types, order.accounts]);
  equal([endpoint.status, endpoint.disabledBy], ["disabled", "operator"]);
  equal((await ENDPOINTS.get("ts-put")).id, "ts-put");
  equal((await ENDPOINTS.list()).filter(({ id }) => id === "ts-put").length, 1);
  await ENDPOINTS.delete("ts-put");
  const gone = [ENDPOINTS.get("ts-put"), ENDPOINTS.delete("ts-put"), ENDPOINTS.secrets("ts-put"), ENDPOINTS.test("ts-put")];
  for (const error of await Promise.all(gone.map((call) => problemOf(call)))) {
    equal([error.status, error.kind], [404, "no-such-endpoint"]);
  }
  equal((await problemOf(ENDPOINTS.put("ts-put", { url: "ftp://a" }))).kind, "invalid-url");
});

check("endpoint-test", async () => {
  await withFake([ACCEPTED, ACCEPTED], async (fake) => {
    // No event but the tests.
    await ENDPOINTS.put("ts-test", { url: `${fake.url}/hook`, accounts: ["ts-test"] });
    const secret = await secretOf("ts-test");
    assert((await ENDPOINTS.test("ts-test")).testAskedAt);
    equal((await events(fake, 0, secret)).map(({ type, v }) => [type, v]), [["webhook.test", 1]]);
    equal((await ENDPOINTS.rotate("ts-test", 2)).secretGeneration, 2);
    equal((await ENDPOINTS.rotate("ts-test", 2)).secretGeneration, 2);
    equal((await problemOf(ENDPOINTS.rotate("ts-test", 4))).kind, "wrong-generation");
    const [latest, old] = await ENDPOINTS.secrets("ts-test");
    assert(latest && old?.until);
    equal([latest.generation, latest.until, old.generation, old.secret], [2, undefined, 1, secret]);
    await ENDPOINTS.test("ts-test");
    for (const one of [latest, old]) {
      equal((await events(fake, 1, one.secret)).map(({ type }) => type), ["webhook.test"]);
    }
  });
  await ENDPOINTS.delete("ts-test");
});

check("endpoint-replay", async () => {
  const cursor = (await BANK.events(undefined, { limit: 1 })).nextCursor;
  const page: EventPage = await BANK.events(cursor, { limit: 1 });
  const [second] = page.events;
  assert(second);
  await withFake(Array<Answer>(9).fill(ACCEPTED), async (fake) => {
    await ENDPOINTS.put("ts-replay", { url: `${fake.url}/hook` });
    await ENDPOINTS.replay("ts-replay", cursor);
    const secret = await secretOf("ts-replay");
    // Events of different payments come in parallel.
    await poll(() => fake.seen.some(({ headers, body }) => verify(secret, headers, body).some(({ id }) => id === second.id)));
  });
  equal((await problemOf(ENDPOINTS.replay("ts-replay", "9.1.0"))).kind, "cursor-gone");
  equal((await problemOf(ENDPOINTS.skip("ts-replay", second.id))).kind, "not-blocking");
  await ENDPOINTS.delete("ts-replay");
});
