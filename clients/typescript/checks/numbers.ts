// Checks of numbers that only a bank with many, or large, payments has.

import { entry } from "./batches.js";
import { PAYMENT, problem, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { day, order, problemOf } from "./world.js";

const NINES = "9".repeat(38);

check("sum-of-38-digits", async () => {
  const byStatus = { SCHEDULED: 0, PENDING: 0, PROCESSED: 0, FAILED: 0, CANCELLED: 0 };
  const GBP = { SCHEDULED: "0", PENDING: "0", PROCESSED: NINES, FAILED: `-${NINES}`, CANCELLED: "0" };
  const one = { date: day(0), byStatus, total: 0, archived: 0, unparsed: 0, sums: { GBP } };
  await withFake([{ body: { from: day(0), to: day(0), counts: [one] } }], async ({ bank }) => {
    const sums = (await bank.counts(day(0), day(0)))[0]?.sums["GBP"];
    equal(sums?.PROCESSED, 99999999999999999999999999999999999999n);
    equal(sums?.FAILED, -99999999999999999999999999999999999999n);
  });
});

check("largest-read", async () => {
  const largest = { ...PAYMENT, amountMinor: 9007199254740991 };
  await withFake([{ body: largest }, { body: { payments: [largest], nextCursor: null } }], async ({ bank }) => {
    equal((await bank.get("acc-1", PAYMENT.paymentId)).amountMinor, 9007199254740991);
    equal((await bank.due(day(0)).toArray()).map(({ amountMinor }) => amountMinor), [9007199254740991]);
  });
});

check("new-members", async () => {
  const unknown = problem(409, "not-thought-of-yet", { hint: "new" });
  const result = { statusCode: 422, accountId: "acc-1", idempotencyKey: "k", problem: { ...unknown, status: 422 } };
  const answers = [
    { status: 201, body: { ...PAYMENT, mood: "good" } },
    { status: 409, body: unknown },
    { body: { results: [result] } },
  ];
  await withFake(answers, async ({ bank }) => {
    equal((await bank.create("acc-1", "k", order())).payment.amountMinor, 12050);
    equal((await problemOf(bank.create("acc-1", "k", order()))).kind, "not-thought-of-yet");
    equal((await bank.createAccountBatch("acc-1", [entry("k")])).map(({ statusCode }) => statusCode), [422]);
  });
});

check("unknown-values", async () => {
  const at = "2090-06-15T09:00:00Z";
  const trail = [...PAYMENT.trail, { status: "DISPUTED", at, by: { kind: "court" } }];
  const payment = { ...PAYMENT, status: "DISPUTED", moveReason: "strike", failureCode: "ZZ99", trail };
  const rejected = { statusCode: 409, problem: problem(409, "not-thought-of-yet") };
  const event = { v: 1, id: "1", type: "payment.disputed", at, epoch: 1, status: "DISPUTED" };
  const page = { events: [event], nextCursor: "1.2.0", hasMore: false };
  await withFake([{ body: payment }, { body: { results: [rejected] } }, { body: page }], async ({ bank }) => {
    const found = await bank.get("acc-1", PAYMENT.paymentId);
    equal([found.status, found.moveReason, found.trail[1]?.by.kind], ["DISPUTED", "strike", "court"]);
    equal(found.failureCode, "ZZ99");
    equal((await bank.createAccountBatch("acc-1", [entry("k")])).map(({ statusCode }) => statusCode), [409]);
    equal((await bank.events()).events.map(({ type }) => type), ["payment.disputed"]);
  });
});
