// Checks of single payments at the running bank.

import { strict as assert } from "node:assert";
import { Bank } from "scheduled-payments";
import { check, equal } from "./suite.js";
import { BANK, NOTHING, day, order, problemOf, rawPayment, withoutData } from "./world.js";

// Every kind of JSON, among them integers that no double holds.
const INTEGERS = [0, -1, 2n ** 63n - 1n, -(2n ** 63n), 10n ** 30n];
const EVERY_KIND = [null, true, false, ...INTEGERS, 0.1, -1.5e-7, "", 'a"\\\n/', [], {}, [[{ b: [1] }]]];
const EVERY_KIND_TEXT =
  "[null,true,false,0,-1,9223372036854775807,-9223372036854775808,1000000000000000000000000000000," +
  '0.1,-1.5e-7,"","a\\"\\\\\\n/",[],{},[[{"b":[1]}]]]';

check("create-and-get", async () => {
  const created = await BANK.create("ts-get", "get-1", order({ data: { note: "rent" } }));
  const payment = await BANK.get("ts-get", created.payment.paymentId);
  equal(withoutData(payment), created.payment);
  equal(created.replayed, false);
  equal([payment.accountId, payment.payeeAccountId, payment.currency], ["ts-get", "acc-2", "GBP"]);
  equal([payment.amountMinor, payment.scheduledFor, payment.dueDate], [12050, day(7), day(7)]);
  equal([payment.status, payment.version, payment.data], ["SCHEDULED", 1, { note: "rent" }]);
  equal(payment.trail.map((step) => [step.status, step.by.kind]), [["SCHEDULED", "client"]]);
});

check("time-with-offset", async () => {
  const time = `${day(7)}T09:30:00+02:00`;
  const { payment } = await BANK.create("ts-time", "time-1", order({ scheduledFor: time }));
  equal([payment.scheduledFor, payment.dueAt], [time, `${day(7)}T07:30:00Z`]);
});

check("replay", async () => {
  const first = await BANK.create("ts-replay", "replay-1", order());
  const second = await BANK.create("ts-replay", "replay-1", order());
  equal(second.payment, first.payment);
  equal([first.replayed, second.replayed], [false, true]);
});

check("key-reused", async () => {
  await BANK.create("ts-reuse", "reuse-1", order());
  const error = await problemOf(BANK.create("ts-reuse", "reuse-1", order({ amountMinor: 1, currency: "EUR" })));
  equal([error.status, error.kind], [422, "idempotency-key-reused"]);
  equal(error.fields, ["amountMinor", "currency"]);
});

check("date-rule", async () => {
  const gbp = (await BANK.calendars()).find(({ currencies }) => currencies.join() === "GBP");
  assert(gbp);
  equal(gbp.closed, undefined);
  const { closed = [] } = await BANK.calendar(gbp.calendarId);
  const holiday = closed.find(({ date }) => date > day(1))?.date;
  assert(holiday);
  const { payment } = await BANK.create("ts-rule", "rule-1", order({ scheduledFor: holiday, dateRule: "following" }));
  equal([payment.dateRule, payment.moveReason, payment.scheduledFor], ["following", "holiday", holiday]);
  assert(payment.dueDate > holiday);
  const refused = order({ scheduledFor: holiday, dateRule: "refuse" });
  const error = await problemOf(BANK.create("ts-rule", "rule-2", refused));
  equal([error.status, error.kind], [422, "date-closed"]);
  const unknown = await problemOf(BANK.calendar("X"));
  equal([unknown.status, unknown.kind], [404, "no-such-calendar"]);
});

check("largest-amount", async () => {
  const { payment } = await BANK.create("ts-large", "large-1", order({ amountMinor: Number.MAX_SAFE_INTEGER }));
  equal(payment.amountMinor, 9007199254740991);
  equal((await BANK.get("ts-large", payment.paymentId)).amountMinor, 9007199254740991);
  assert.match(await rawPayment("ts-large", payment.paymentId), /"amountMinor":9007199254740991,/);
});

check("amount-too-large", async () => {
  const tooLarge = order({ amountMinor: Number.MAX_SAFE_INTEGER + 1 });
  const error = await problemOf(BANK.create("ts-large", "large-2", tooLarge));
  equal([error.status, error.kind, error.field], [422, "invalid-amount", "amountMinor"]);
});

check("all-faults", async () => {
  const wrong = order({ payeeAccountId: "..", amountMinor: 0, currency: "gbp" });
  const error = await problemOf(BANK.create("ts-faults", "faults-1", wrong));
  equal([error.kind, error.field], ["invalid-payee", "payeeAccountId"]);
  const found = error.errors.map(({ pointer, type }) => [pointer, type.slice(type.lastIndexOf(":") + 1)]);
  const payee = ["/payeeAccountId", "invalid-payee"];
  equal(found, [payee, ["/amountMinor", "invalid-amount"], ["/currency", "invalid-currency"]]);
  equal(error.errors[0]?.detail, error.detail);
});

check("cancel-twice", async () => {
  const { payment } = await BANK.create("ts-cancel", "cancel-1", order());
  const cancelled = await BANK.cancel("ts-cancel", payment.paymentId);
  equal([cancelled.status, cancelled.version], ["CANCELLED", 2]);
  equal(await BANK.cancel("ts-cancel", payment.paymentId), cancelled);
});

check("cancel-nothing", async () => {
  for (const call of [() => BANK.cancel("ts-cancel", NOTHING), () => BANK.get("ts-cancel", NOTHING)]) {
    const error = await problemOf(call());
    equal([error.status, error.kind], [404, "no-such-payment"]);
  }
});

check("amend", async () => {
  const { payment: first } = await BANK.create("ts-amend", "amend-1", order({ reference: "RENT", data: { note: "rent" } }));
  const { paymentId, version } = first;
  const wanted = order({ amountMinor: 13000, scheduledFor: day(9), data: { note: "raised" } });
  const amended = await BANK.amend("ts-amend", paymentId, "raise-1", wanted, { version });
  const payment = await BANK.get("ts-amend", paymentId);
  equal([withoutData(payment), amended.replayed], [amended.payment, false]);
  equal([payment.paymentId, payment.status, payment.version], [paymentId, "SCHEDULED", 2]);
  equal([payment.amountMinor, payment.dueDate, payment.reference], [13000, day(9), undefined]);
  equal(payment.data, { note: "raised" });
  const versions = await BANK.versions("ts-amend", paymentId);
  const found = versions.map((it) => [it.version, it.amountMinor, it.dueDate]);
  equal(found, [[1, 12050, day(7)], [2, 13000, day(9)]]);
  equal(versions.map((it) => it.changedFields), [[], ["amountMinor", "scheduledFor", "reference", "data"]]);
  equal(versions.map((it) => "data" in it), [false, false]);
  const withData = await BANK.versions("ts-amend", paymentId, { withData: true });
  equal(withData.map((it) => it.data), [{ note: "rent" }, { note: "raised" }]);
});

check("amend-replay", async () => {
  const { paymentId } = (await BANK.create("ts-amend", "replay-1", order())).payment;
  const raised = order({ amountMinor: 13000 });
  const first = await BANK.amend("ts-amend", paymentId, "raise-1", raised, { version: 1 });
  const second = await BANK.amend("ts-amend", paymentId, "raise-1", raised, { version: 1 });
  equal(second.payment, first.payment);
  equal([first.replayed, second.replayed], [false, true]);
  const other = order({ amountMinor: 14000 });
  const error = await problemOf(BANK.amend("ts-amend", paymentId, "raise-1", other, { version: 2 }));
  equal([error.status, error.kind, error.fields], [422, "idempotency-key-reused", ["amountMinor"]]);
});

check("amend-too-late", async () => {
  const { paymentId } = (await BANK.create("ts-amend", "late-1", order())).payment;
  await BANK.amend("ts-amend", paymentId, "raise-1", order({ amountMinor: 13000 }), { version: 1 });
  const other = order({ amountMinor: 14000 });
  const changed = await problemOf(BANK.amend("ts-amend", paymentId, "raise-2", other, { version: 1 }));
  equal([changed.status, changed.kind, changed.currentVersion], [412, "version-changed", 2]);
  await BANK.cancel("ts-amend", paymentId);
  const late = await problemOf(BANK.amend("ts-amend", paymentId, "raise-3", other, { version: 3 }));
  equal([late.status, late.kind, late.currentVersion], [409, "not-amendable", 3]);
});

check("data-every-kind", async () => {
  const { payment } = await BANK.create("ts-data", "data-1", order({ data: EVERY_KIND }));
  equal((await BANK.get("ts-data", payment.paymentId)).data, EVERY_KIND);
  assert((await rawPayment("ts-data", payment.paymentId)).includes(`"data":${EVERY_KIND_TEXT}`));
});

check("data-null", async () => {
  const { payment: null_ } = await BANK.create("ts-data", "null-1", order({ data: null }));
  const { payment: absent } = await BANK.create("ts-data", "absent-1", order());
  equal((await BANK.get("ts-data", null_.paymentId)).data, null);
  equal("data" in (await BANK.get("ts-data", absent.paymentId)), false);
  assert.match(await rawPayment("ts-data", null_.paymentId), /"data":null/);
});

check("non-ascii-data", async () => {
  const data = { "Müller & Söhne": "家賃 – аренда – إيجار – \u{1f3e0}\u2028" };
  const { payment } = await BANK.create("ts-data", "script-1", order({ data }));
  equal((await BANK.get("ts-data", payment.paymentId)).data, data);
});

check("odd-ids", async () => {
  const [account, key] = ["...-_ts.Odd_", "!\"#$%&'()*+-./:;<=>?@[\\]^_`{|}~"];
  const { payment } = await BANK.create(account, key, order({ payeeAccountId: "_.-" }));
  equal([payment.accountId, payment.payeeAccountId], [account, "_.-"]);
  equal((await BANK.findByKey(account, key))?.paymentId, payment.paymentId);
  equal(await BANK.get(account, payment.paymentId), payment);
  const inQuotes = await BANK.create(account, '"a\\"b"', order());
  equal(await BANK.findByKey(account, '"a\\"b"'), inQuotes.payment);
});

check("dots-refused", async () => {
  // Nothing listens there: a request would be an error of another kind.
  const nowhere = new Bank("http://127.0.0.1:9");
  for (const account of ["", ".", ".."]) {
    await assert.rejects(nowhere.get(account, "x"), RangeError);
  }
});

check("request-id", async () => {
  const error = await problemOf(BANK.get("ts-get", NOTHING, { requestId: "checkout-7f3a" }));
  equal(error.requestId, "checkout-7f3a");
  const own = (await problemOf(BANK.get("ts-get", NOTHING))).requestId;
  assert(own && own !== "checkout-7f3a");
});

check("unknown-parameter", async () => {
  const error = await problemOf(BANK.generated.get({ url: "/counts", query: { date: "2090-06-15" } }));
  equal([error.status, error.kind, error.field], [400, "invalid-parameter", "date"]);
});
