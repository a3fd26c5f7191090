// Checks of lists and counts at the running bank.

import { strict as assert } from "node:assert";
import type { Payment } from "scheduled-payments";
import { PAYMENT, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { BANK, SETTLED_KEY, TODAY, TRANSACTION, day, order, problemOf, withoutData } from "./world.js";

/** Returns five payments of an account, each due a day later than the one before. */
async function five(account: string): Promise<Payment[]> {
  const created: Payment[] = [];
  for (let n = 0; n < 5; n += 1) {
    created.push((await BANK.create(account, `five-${n}`, order({ scheduledFor: day(10 + n) }))).payment);
  }
  return created;
}

check("pages-ascending", async () => {
  equal(await BANK.list("ts-pages", { pageSize: 2 }).toArray(), []);
  const created = await five("ts-pages");
  equal(await BANK.list("ts-pages", { pageSize: 2 }).toArray(), created);
});

check("pages-descending", async () => {
  const created = await five("ts-back");
  equal(await BANK.list("ts-back", { pageSize: 2, order: "desc" }).toArray(), created.reverse());
});

check("date-range", async () => {
  const created = await five("ts-range");
  equal(await BANK.list("ts-range", { from: day(11), to: day(13) }).toArray(), created.slice(1, 4));
});

check("several-statuses", async () => {
  const [first, second, ...others] = await five("ts-status");
  const cancelled = await BANK.cancel("ts-status", second?.paymentId ?? "");
  const both = await BANK.list("ts-status", { status: ["CANCELLED", "SCHEDULED"] }).toArray();
  equal(both, [first, cancelled, ...others]);
  equal(await BANK.list("ts-status", { status: ["CANCELLED", "FAILED"] }).toArray(), [cancelled]);
});

check("payee-filter", async () => {
  await five("ts-payee");
  const { payment } = await BANK.create("ts-payee", "other-1", order({ payeeAccountId: "acc-9", data: [1] }));
  const found = await BANK.list("ts-payee", { payee: "acc-9", withData: true }).toArray();
  equal(found, [{ ...payment, data: [1] }]);
});

check("reference-filter", async () => {
  await five("ts-reference");
  const reference = "INV 2026/117+(a)";
  const { payment } = await BANK.create("ts-reference", "other-1", order({ reference }));
  equal(payment.reference, reference);
  equal(await BANK.list("ts-reference", { reference }).toArray(), [payment]);
});

check("find-by-key", async () => {
  const key = "a+key&with=/#?%41";
  const { payment } = await BANK.create("ts-find", key, order({ data: { a: 1 } }));
  const found = await BANK.findByKey("ts-find", key, { withData: true });
  assert(found);
  equal([withoutData(found), found.data], [payment, { a: 1 }]);
  equal(await BANK.findByKey("ts-find", key), payment);
});

check("find-by-unknown-key", async () => {
  equal(await BANK.findByKey("ts-find", "unknown-1"), undefined);
});

check("due-by-date", async () => {
  const settled = await BANK.findByKey("acc-1", SETTLED_KEY);
  assert(settled);
  const found = await BANK.due(TODAY, { status: ["PROCESSED", "FAILED"], pageSize: 1 }).toArray();
  equal(found.map(({ paymentId }) => paymentId), [settled.paymentId]);
  equal([found[0]?.amountMinor, found[0]?.settledAt], [350, settled.settledAt]);
  equal(await BANK.due(day(700)).toArray(), []);
});

check("find-by-transaction", async () => {
  const found = await BANK.findByTransaction(TRANSACTION);
  equal(found.map(({ transactionId, status }) => [transactionId, status]), [[TRANSACTION, "PROCESSED"]]);
  equal(found, [await BANK.findByKey("acc-1", SETTLED_KEY)]);
  equal(await BANK.findByTransaction("TX with spaces & more"), []);
});

check("counts", async () => {
  const [today, tomorrow, ...more] = await BANK.counts(TODAY, day(1));
  equal([today?.date, tomorrow?.date, more], [TODAY, day(1), []]);
  equal([today?.total, today?.byStatus.PROCESSED, today?.byStatus.SCHEDULED], [1, 1, 0]);
  equal(today?.sums["GBP"]?.PROCESSED, 350n);
  equal([tomorrow?.total, tomorrow?.sums], [0, {}]);
});

check("events", async () => {
  let page = await BANK.events(undefined, { limit: 1 });
  const found = [...page.events];
  while (page.hasMore) {
    page = await BANK.events(page.nextCursor);
    found.push(...page.events);
  }
  const settled = found.filter(({ transactionId }) => transactionId === TRANSACTION);
  equal(settled.map(({ type, version, amountMinor }) => [type, version, amountMinor]), [["payment.processed", 3, 350]]);
  equal(settled.map(({ previousStatus, status }) => [previousStatus, status]), [["PENDING", "PROCESSED"]]);
  const error = await problemOf(BANK.events("9.1.0"));
  equal([error.status, error.kind, error.oldestCursor], [410, "cursor-gone", `${settled[0]?.epoch}.1.0`]);
});

check("unreadable", async () => {
  const unreadable = { count: 2, paymentIds: [PAYMENT.paymentId] };
  const first = { body: { payments: [], nextCursor: "abc", unreadable } };
  await withFake([first, { body: { payments: [PAYMENT], nextCursor: null } }], async ({ bank, seen }) => {
    const pages = bank.list("acc-1", { status: ["SCHEDULED"] });
    equal((await pages.toArray()).length, 1);
    equal([pages.unreadable, pages.unreadableIds], [2, [PAYMENT.paymentId]]);
    equal(seen.map(({ path }) => /cursor=[a-z]*/.exec(path)?.[0]), [undefined, "cursor=abc"]);
  });
});
