// The fixture of the console's checks: the banks, the browser, and a page for each.

import { bank, filled } from "./bank.mjs";
import { Console, must, start } from "./browser.mjs";

export const { BANK_URL, OPEN_URL, LIMITED_URL } = process.env;
/** The most that a first visit may load, compressed. */
export const MOST = 60 * 1024;
export const REFUSED = /status of 40[013]/;

export const browser = await start();
export const own = await bank(BANK_URL, true);
export const day = await filled(own);
export const VIEWS = [
  "day", `day?date=${day.later(5)}`, "ahead", `ahead?from=${day.later(31)}`, `list?date=${day.today}&status=PROCESSED`,
  `list?date=${day.later(400)}&status=SCHEDULED`, "find", "find?text=nothing", "find?text=44102700", `find?text=10000.00&date=${day.today}`, "find?text=acc-1",
  "account?id=acc-1", "account?id=acc-1&show=past", "account?id=nobody", `account?id=${"a".repeat(48)}&show=all`, `find?text=${day.settled.transactionId}`,
  `find?account=acc-1&key=amended`, `payment?id=${day.settled.paymentId}`, `payment?id=${day.amended}`, `payment?id=${day.cancelled}`,
  `payment?id=${day.hostile.id}`, `payment?id=${day.hostile.long}`, "waiting", "endpoints", "endpoints?id=broken", "bank", "audit", "audit?action=cancel&person=nobody",
  "alarms", "alarms?at=entries", "operations?at=a-holiday-is-announced", "restore",
  "queues", "sample?queue=dispatch-failures", "reports", `reports?from=${day.today}`, `report?name=${day.report}`,
];

/** Runs a check in a page of its own. */
export async function check(name, run, options = {}) {
  const from = Date.now();
  let console = null;
  try {
    console = await Console.open(browser, options.url ?? BANK_URL, options);
    await run(console);
    await console.clean(...(options.expected ?? []));
    globalThis.console.log(`ok ${name} (${Date.now() - from} ms)`);
  } catch (error) {
    globalThis.console.log(`FAILED ${name}: ${error.message}`);
    const wrong = console?.wrong ?? [];
    if (wrong.length > 0) globalThis.console.log(`    and: ${wrong.join("; ")}`);
    process.exitCode = 1;
  } finally {
    await console?.close().catch(() => {});
  }
}

/** Fails if something that could act came into the page. */
export async function inert(console) {
  const active = "script, img, iframe, object, embed, style, meta, link, base, [onerror], [onload], [ontoggle], [srcdoc], [hx-get], [data-hx-delete]";
  const found = await console.page.evaluate((active) => {
    const inside = [...document.querySelectorAll("#main, #problem, #status")];
    return inside.flatMap((part) => [...part.querySelectorAll(active)].map((element) => element.outerHTML))
      .concat([...document.querySelectorAll("#problem *, #status *, a[href^='javascript' i]")].map((element) => element.outerHTML));
  }, active);
  must(found.length === 0, `it is in the page: ${found.join(", ")}`);
  must(console.responses.every((response) => !response.url().includes("/evil")), "a text sent a request");
}
