// Checks that the console shows each trouble without a click, and leads to where it is mended. Needs TROUBLED_URL and TROUBLED_DB, a
// sandbox without tokens and its DynamoDB, and PAUSED_URL, one that is paused.

import { bank, create, must as answered } from "./bank.mjs";
import { DESK, PHONE, must, pause } from "./browser.mjs";
import { check } from "./harness.mjs";

const { TROUBLED_URL, TROUBLED_DB, PAUSED_URL } = process.env;
const { url, ask } = await bank(TROUBLED_URL, false);
const paused = await bank(PAUSED_URL, false);

/** A call of DynamoDB, as somebody makes it who damages a table. The engine checks no signature. */
async function table(call, body) {
  const response = await fetch(TROUBLED_DB, {
    method: "POST",
    headers: {
      "X-Amz-Target": `DynamoDB_20120810.${call}`,
      "Content-Type": "application/x-amz-json-1.0",
      Authorization: "AWS4-HMAC-SHA256 Credential=local/20261127/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
      "X-Amz-Date": "20261127T000000Z",
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  must(response.ok, `${call}: ${text}`);
  return JSON.parse(text);
}

const advance = async (of, advanceSeconds) => answered(await of.ask("/sandbox/clock", { method: "POST", body: { advanceSeconds } }), 200);

/** Performs an action without a browser: its preview, and its confirmation with the fields of the preview. */
async function act(action, fields) {
  const send = (all) => ask(`/console/actions/${action}`, { method: "POST", body: String(new URLSearchParams(all)), headers: FORM });
  const preview = answered(await send({ ...fields, step: "preview" }), 200).text;
  const hidden = [...preview.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  must(hidden.length > 0, `nothing to do: ${preview}`);
  answered(await send(Object.fromEntries(hidden)), 200);
}
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };

const DAY = 86_400;
const now = Date.parse(answered(await ask("/sandbox/clock"), 200).json.now);
const later = (days) => new Date(now + days * DAY * 1_000).toISOString().slice(0, 10);
const weekday = new Date(now).getUTCDay();
// A fortnight passes, until a Sunday: on a closed date the first screen has one more text.
const sunday = 14 + ((7 - weekday) % 7);
const saturday = later(sunday + 6);
const order = (more) => ({ payeeAccountId: "landlord", amountMinor: 2_218, currency: "GBP", scheduledFor: later(0), ...more });

/** Makes the troubles, and returns the payments of some. */
async function made() {
  answered(await ask("/webhook-endpoints/books", { method: "PUT", body: { url: "http://127.0.0.1:9/hook", description: "" } }), 201);
  const stuck = await create({ ask }, "acc-stuck", "stuck", order({ reference: "SANDBOX-NEVER" }));
  const contradicted = await create({ ask }, "acc-told", "told", order({ reference: "SANDBOX-CONTRADICTING" }));
  await create({ ask }, "acc-today", "today", order({ scheduledFor: later(sunday) }));
  const unread = await create({ ask }, "acc-lost", "lost", order({ scheduledFor: later(2) }));
  const moved = await create({ ask }, "acc-closed", "closed", order({ scheduledFor: saturday, dateRule: "none" }));
  const details = (id) => ({ TableName: "payment-history", Key: { pk: { S: `PAY#${id}` }, sk: { S: "DETAILS" } } });
  await table("UpdateItem", { ...details(unread), UpdateExpression: "REMOVE currency" });
  // As if the calendar had been open when the payment was created.
  await table("UpdateItem", { ...details(moved), UpdateExpression: "SET dateRule = :rule", ExpressionAttributeValues: { ":rule": { S: "following" } } });
  for (let day = 0; day < sunday; day += 1) await advance({ ask }, DAY);
  // A count that nobody made.
  await table("UpdateItem", {
    TableName: "payments", Key: { pk: { S: "COUNTS#0" }, sk: { S: later(0) } },
    UpdateExpression: "ADD FAILED :one", ExpressionAttributeValues: { ":one": { N: "1" } },
  });
  await act("start-recount", { from: later(0), to: later(0) });
  await act("look-for-redates", {});
  // Both run beside the rest, one after the other.
  for (let attempt = 0; attempt < 240; attempt += 1) {
    const strip = answered(await ask("/console/views/attention"), 200).text;
    if (strip.includes("miscounted") && strip.includes("redate")) break;
    await advance({ ask }, 60);
    await pause(500);
  }
  return { stuck, contradicted };
}

const { stuck, contradicted } = await made();
await create(paused, "acc-due", "due", order({}));
await advance(paused, 2 * DAY);

/** The troubles of a bank: the words of each, and where its link leads. */
const TROUBLES = [
  [TROUBLED_URL, /2 stuck/, "waiting", stuck.slice(0, 8)],
  [TROUBLED_URL, /1 contradiction/, "payment", contradicted],
  [TROUBLED_URL, /dead letter/, "queues", "Dispatch failures"],
  [TROUBLED_URL, /1 endpoint disabled/, "endpoints", "books"],
  [TROUBLED_URL, /1 date miscounted/, "bank", "Findings of the recount"],
  [TROUBLED_URL, /1 to redate/, "ahead", "wait for a redate"],
  [PAUSED_URL, /paused/, "bank", "Paused"],
  [PAUSED_URL, /1 overdue/, "waiting", "acc-due"],
];

for (const [name, viewport] of Object.entries({ phone: PHONE, desk: DESK })) {
  await check(`each trouble is seen without a click and reached with one, ${name}`, async (console) => {
    for (const [at, words, view, shown] of TROUBLES) {
      await console.page.goto(`${at}/console`, { waitUntil: "load" });
      await console.heading();
      const link = await console.page.waitForSelector("#attention li a", { timeout: 15_000 });
      must(link !== null, "there is no strip");
      const links = await console.page.$$("#attention li a");
      const texts = await Promise.all(links.map((link) => link.evaluate((link) => link.textContent)));
      const place = texts.findIndex((text) => words.test(text));
      must(place >= 0, `${words} is not among ${texts.join(" | ")}`);
      must(await links[place].evaluate((link) => link.checkVisibility()), `${words} is not visible`);
      await console.accessible();
      await console.isWhole();
      await links[place].click();
      await console.page.waitForFunction((view) => location.hash.startsWith(`#${view}`), {}, view);
      await console.page.waitForFunction((shown) => document.querySelector("#main").textContent.includes(shown), { timeout: 15_000 }, shown)
        .catch(async () => must(false, `${words} leads to ${await console.text("#main")}`));
    }
  }, { url, viewport });
}

await check("the troubles and the day's numbers are in a phone's first screen", async (console) => {
  await console.page.waitForSelector("#attention li a", { timeout: 15_000 });
  await console.heading();
  must((await console.text("#main")).includes("wait for a redate"), "Next dates do not mark it");
  const ends = await console.page.$$eval("#attention li, #main .tiles a", (parts) => parts.map((part) => part.getBoundingClientRect().bottom));
  must(ends.length >= 6 + 5, `there are ${ends.length} cards and tiles`);
  must(Math.max(...ends) <= PHONE.height, `they end at ${Math.max(...ends)} px`);
}, { url, viewport: PHONE });
