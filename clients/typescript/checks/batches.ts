// Checks of batches.

import { strict as assert } from "node:assert";
import type { AccountBatchEntry } from "scheduled-payments";
import { type Answer, PAYMENT, type Seen, problem, throttled, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { BANK, order } from "./world.js";

/** Returns an entry of an account's batch. */
export function entry(idempotencyKey: string, amountMinor = 100): AccountBatchEntry {
  return { idempotencyKey, ...order({ amountMinor }) };
}

/** Returns the result of an entry that was created. */
export function created(key: string): object {
  return { statusCode: 201, accountId: "acc-1", idempotencyKey: key, payment: PAYMENT };
}

/** Returns the result of an entry that was not. */
export function rejected(key: string, status: number, kind: string, more: object = {}): object {
  return { statusCode: status, accountId: "acc-1", idempotencyKey: key, problem: problem(status, kind, more) };
}

/** Returns the keys of a batch that was sent. */
export function keys({ body }: Seen): string {
  return (JSON.parse(body) as { payments: AccountBatchEntry[] }).payments.map((one) => one.idempotencyKey).join("");
}

export function answers(...all: object[][]): Answer[] {
  return all.map((results) => ({ body: { results } }));
}

check("batch-one-rejected", async () => {
  const amounts: [string, number][] = [["ts-batch-1", 100], ["ts-batch-2", 0], ["ts-batch-1", 300]];
  const entries = amounts.map(([accountId, amount]) => ({ accountId, ...entry(`b-${amount}`, amount) }));
  const [first, second, third] = await BANK.createBatch(entries);
  assert(first && "payment" in first && second && "problem" in second && third && "payment" in third);
  equal([first.statusCode, second.statusCode, third.statusCode], [201, 422, 201]);
  equal([first.payment.amountMinor, third.payment.amountMinor], [100, 300]);
  equal([second.accountId, second.idempotencyKey], ["ts-batch-2", "b-0"]);
  assert.match(second.problem.type, /:invalid-amount$/);
  equal(second.problem.errors?.[0]?.pointer, "/payments/1/amountMinor");
});

check("account-batch", async () => {
  const results = await BANK.createAccountBatch("ts-batch-3", [entry("a"), entry("b"), entry("a")]);
  const payments = results.flatMap((result) => ("payment" in result ? [result] : []));
  const named = payments.map(({ accountId, idempotencyKey }) => [accountId, idempotencyKey]);
  equal(named, [..."aba"].map((key) => ["ts-batch-3", key]));
  equal(payments.map(({ idempotentReplayed }) => idempotentReplayed ?? false), [false, false, true]);
  equal(payments[0]?.payment, payments[2]?.payment);
});

check("batch-repeats-503", async () => {
  const b = rejected("b", 503, "throttled", { retryAfterSeconds: 2 });
  const d = rejected("d", 503, "throttled", { retryAfterSeconds: 3 });
  const all = answers([created("a"), b, rejected("c", 500, "internal"), d], [created("b"), d], [created("d")]);
  await withFake(all, async ({ bank, seen, pauses }) => {
    const results = await bank.createAccountBatch("acc-1", [..."abcd"].map((key) => entry(key)));
    equal(seen.map(keys), ["abcd", "bd", "d"]);
    equal(results.map(({ idempotencyKey }) => idempotencyKey), [..."abcd"]);
    equal(results.map(({ statusCode }) => statusCode), [201, 201, 500, 201]);
    equal(pauses, [3, 6]);
  });
});

check("batch-pointers", async () => {
  const type = "urn:scheduled-payments:problem:x";
  const errors = [{ pointer: "/payments/0/currency", type, detail: "It is so." }];
  const busy = rejected("b", 503, "throttled", { retryAfterSeconds: 1 });
  const all = answers([created("a"), busy], [rejected("b", 422, "invalid-currency", { errors })]);
  await withFake(all, async ({ bank }) => {
    const result = (await bank.createAccountBatch("acc-1", [entry("a"), entry("b")]))[1];
    assert(result && "problem" in result);
    equal(result.problem.errors?.[0]?.pointer, "/payments/1/currency");
  });
});

check("batch-keeps-results", async () => {
  const first = answers([created("a"), rejected("b", 503, "throttled", { retryAfterSeconds: 1 })]);
  for (const later of [{ status: 401, body: { message: "Unauthorized" } }, throttled(100)]) {
    await withFake([...first, later], async ({ bank, seen }) => {
      const results = await bank.createAccountBatch("acc-1", [entry("a"), entry("b")]);
      equal(results.map(({ statusCode }) => statusCode), [201, 503]);
      equal(seen.length, 2);
    });
  }
});
