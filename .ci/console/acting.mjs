// Checks what operators do in the console.

import { gunzipSync } from "node:zlib";
import { HOSTILE, bank, create } from "./bank.mjs";
import { DESK, PHONE, must, pause } from "./browser.mjs";
import { BANK_URL, LIMITED_URL, REFUSED, VIEWS, check, day, inert, own } from "./harness.mjs";

for (const where of [PHONE, DESK]) {
  await check(`a payment is cancelled after a preview, and the trail says so, ${where === PHONE ? "phone" : "desk"}`, async (console) => {
    const id = await create(own, "acc-1", `to-cancel-${where.width}`, day.order({ scheduledFor: day.later(20) }));
    await console.signIn("act");
    await console.view(`payment?id=${id}`);
    await console.page.click("form[data-action=cancel] button");
    await console.page.waitForSelector("#dialog[open] #dialog-title");
    must((await console.page.$("#dialog a[title=\"" + id + "\"]")) !== null, "the preview does not name it");
    must((await own.ask(`/accounts/acc-1/payments/${id}`)).json.status === "SCHEDULED", "the preview did it");
    await console.accessible();
    await console.isWhole();
    await console.page.click("#dialog form[data-action=cancel] button:not([data-close])");
    await console.page.waitForFunction(() => document.querySelector("#dialog form[data-action]") === null);
    must((await own.ask(`/accounts/acc-1/payments/${id}`)).json.status === "CANCELLED", "it is not cancelled");
    await console.accessible();
    await console.page.keyboard.press("Escape");
    await console.page.waitForFunction(() => !document.querySelector("#dialog").open);
    await console.page.waitForFunction(() => document.querySelector("#main").textContent.includes("Cancelled"));
    await console.view("audit");
    must((await console.page.$("#main a[title=\"" + id + "\"]")) !== null, "the trail does not have it");
  }, { viewport: where });
}

/** A list of three payments. */
async function selectable(name) {
  const date = day.later(21), ids = [];
  for (const n of [0, 1, 2]) {
    ids.push(await create(own, "acc-1", `${name}-${n}`, day.order({ scheduledFor: date, dateRule: "none", amountMinor: 100_001, reference: name })));
  }
  return { ids, list: `list?date=${date}&status=SCHEDULED&reference=${name}` };
}

for (const where of [PHONE, DESK]) {
  await check(`payments of a list are selected and cancelled, ${where === PHONE ? "phone" : "desk"}`, async (console) => {
    const { ids, list } = await selectable(`selected-${where.width}`);
    await console.signIn("act");
    await console.view(list);
    must(!(await console.page.$eval(".pick", (pick) => pick.checkVisibility())), "nothing is selected, and it says so");
    for (const id of ids.slice(1)) await console.page.click(`[name=payments][value="${id}"]`);
    must((await console.text(".pick p")).includes("2 selected 2,000.02 GBP"), `it says ${await console.text(".pick p")}`);
    await console.accessible();
    await console.isWhole();
    await console.page.click(".pick .danger");
    await console.page.waitForSelector("#dialog[open] .fill");
    const preview = await console.text("#dialog");
    must(!preview.includes(ids[0].slice(0, 8)) && ids.slice(1).every((id) => preview.includes(id.slice(0, 8))), `the preview has ${preview}`);
    await console.page.click("#dialog .fill");
    await console.page.waitForFunction(() => document.querySelector("#dialog form[data-action]") === null);
    const statuses = await Promise.all(ids.map(async (id) => (await own.ask(`/accounts/acc-1/payments/${id}`)).json.status));
    must(statuses.join() === "SCHEDULED,CANCELLED,CANCELLED", `they are ${statuses}`);
  }, { viewport: where });
}

await check("who only looks sees a list, and selects nothing", async (console) => {
  const { ids, list } = await selectable("looked-at");
  await console.signIn("look");
  await console.view(list);
  must(await console.page.$eval("#main table", (table) => table.checkVisibility()), "the list is hidden");
  must((await console.text("#main table")).includes(ids[0].slice(0, 8)), "the list has not the payment");
  const shown = await console.page.$$eval("#main [type=checkbox], #main .pick", (parts) => parts.filter((part) => part.checkVisibility()).length);
  must(shown === 0, `${shown} parts select`);
});

/** Every other action: where its form is, its name in the trail, and what an operator types into the view and into the dialog. */
const ACTS = [
  ["bank", "start-sweep", "Started a sweep"], ["bank", "start-redrive", "Started a redrive"], ["bank", "start-report", "Started a report"],
  ["bank", "start-archive", "Started the archive"], ["bank", "look-for-redates", "Started a count"],
  ["bank", "start-recount", "Started a recount", { from: day.today, to: day.today }],
  ["bank", "redate", "Started a redate", { calendar: "GB", from: day.later(1), to: day.later(14) }],
  ["endpoints", "test-endpoint", "Tested"], ["endpoints", "skip-event", "Skipped an event"],
  ["endpoints?id=shop", "enable-endpoint", "Enabled"],
  ["endpoints?id=broken", "replay-endpoint", "Replayed to", {}, { since: `${day.today}T11:00` }],
];

await check("every action is previewed, done and in the trail, phone", async (console) => {
  await console.signIn("act");
  for (const [view, action, , typed, asked] of ACTS) {
    await console.view(view);
    await console.accessible();
    for (const [name, value] of Object.entries(typed ?? {})) {
      // As a date field takes it from a script, whatever the browser's language is.
      await console.page.$eval(`form[data-action=${action}] [name=${name}]`, (field, value) => (field.value = value), value);
    }
    await console.page.click(`form[data-action=${action}] button`);
    await console.page.waitForSelector(`#dialog[open] form[data-action=${action}] button`, { timeout: 15_000 }).catch(async () => {
      throw new Error(`${action} has no preview: ${await console.text("#problem")} ${await console.text("#dialog")}`);
    });
    await console.accessible();
    await console.isWhole();
    for (const [name, value] of Object.entries(asked ?? {})) {
      await console.page.$eval(`#dialog [name=${name}]`, (field, value) => (field.value = value), value);
      await console.page.click(`#dialog form[data-action=${action}] button:not([data-close])`);
      await console.page.waitForSelector("#dialog [name=step][value=do]", { timeout: 15_000 });
      await console.accessible();
      await console.isWhole();
    }
    await console.page.click(`#dialog form[data-action=${action}] button:not([data-close])`);
    await console.page.waitForSelector("#dialog[open] a[href^='#audit']", { timeout: 15_000 }).catch(async () => {
      throw new Error(`nothing came of ${action}: ${await console.text("#dialog")}`);
    });
    must(!(await console.text("#dialog")).includes("Refused"), `${action}: ${await console.text("#dialog")}`);
    await console.accessible();
    await console.page.keyboard.press("Escape");
    await console.page.waitForFunction(() => !document.querySelector("#dialog").open);
  }
  await console.view("audit");
  const trail = await console.page.$$eval("#main tbody tr", (rows) => rows.map((row) => row.textContent));
  for (const [, , did] of ACTS) must(trail.some((row) => row.includes(did)), `the trail does not have: ${did}`);
}, { viewport: PHONE });

/** Waits for what the dialog says. */
const said = (console, text) =>
  console.page.waitForFunction((text) => document.querySelector("#dialog").textContent.includes(text), { timeout: 15_000 }, text)
    .catch(async () => must(false, `the dialog does not say ${text}, but: ${await console.text("#dialog")}`));

/** Previews and confirms an action of the view that is shown, with a reason. */
async function turn(console, action, ends) {
  await console.page.click(`form[data-action=${action}] button`);
  await console.page.waitForSelector("#dialog[open] [name=reason]", { timeout: 15_000 });
  await console.accessible();
  await console.isWhole();
  await console.page.$eval("#dialog [name=reason]", (field) => (field.value = "a wrong feed"));
  await console.page.click(`#dialog form[data-action=${action}] button:not([data-close])`);
  await said(console, ends);
  await console.page.keyboard.press("Escape");
  await console.page.waitForFunction(() => !document.querySelector("#dialog").open);
}

/** A second person reads these words in the plan that waits, and approves it. */
async function approved(console, words, ends) {
  await console.view("audit");
  must(!(await console.page.$eval("form[data-approval=look]", (form) => form.checkVisibility()).catch(() => false)), "Ana may decide");
  await console.signOut();
  // Audit is the view of the address, so signing in shows it.
  await console.signIn("approve");
  await console.heading();
  await console.page.click("form[data-approval=look] button");
  await console.page.waitForSelector("#dialog[open] form[data-approval=approve] button", { timeout: 15_000 });
  await console.accessible();
  await console.isWhole();
  const plan = await console.text("#dialog");
  must(words.every((text) => plan.includes(text)), `the plan is ${plan}`);
  await console.page.click("#dialog form[data-approval=approve] button");
  await said(console, ends);
  await console.page.keyboard.press("Escape");
}

await check("what one person stops, two persons resume", async (console) => {
  await console.signIn("act");
  await console.view("bank");
  await turn(console, "stop", "nothing is claimed or sent");
  await console.view("bank");
  await turn(console, "resume", "waits for a second person");
  await approved(console, ["ana", "a wrong feed", "to claim"], "the next sweep claims");
  await console.view("bank");
  must((await console.page.$("form[data-action=resume]")) === null, "it is not resumed");
}, { viewport: PHONE });

for (const where of [PHONE, DESK]) {
  await check(`a date that its limit holds is released by two persons, ${where === PHONE ? "phone" : "desk"}`, async (console) => {
    const limited = await bank(LIMITED_URL, true), now = async () => (await limited.ask("/sandbox/clock")).json.now;
    // Noon of another day for each size.
    const noon = new Date((Math.floor(Date.parse(await now()) / 86_400_000) + 1.5) * 86_400_000).toISOString();
    const order = { payeeAccountId: "landlord", amountMinor: 2_218, currency: "GBP", scheduledFor: noon.slice(0, 10), dateRule: "none" };
    const ids = await Promise.all(["one", "other"].map((key) => create(limited, "acc-1", `${key}-${where.width}`, order)));
    await limited.ask("/sandbox/clock", { method: "POST", body: { to: noon } });
    const until = async (wanted, otherwise) => {
      for (let attempt = 0; attempt < 120; attempt += 1) {
        if (await wanted()) return;
        await limited.ask("/sandbox/clock", { method: "POST", body: { advanceSeconds: 60 } });
        await pause(500);
      }
      throw new Error(`${otherwise} after a minute`);
    };
    const line = `#day?date=${order.scheduledFor}`;
    await until(async () => (await limited.ask("/console/views/attention")).text.includes(line), "nothing is held");
    await console.signIn("act");
    await (await console.page.waitForSelector(`#attention a[href="${line}"]`, { timeout: 15_000 })).click();
    await console.page.waitForSelector("#main form[data-action=release-day] button", { timeout: 15_000 });
    await console.accessible();
    await console.isWhole();
    await turn(console, "release-day", "waits for a second person");
    await approved(console, ["ana", "a wrong feed", "up to 102 payments", "2 payments"], "the sweep claims what is due");
    const shown = async () => Promise.all(ids.map((id) => limited.ask(`/accounts/acc-1/payments/${id}`)));
    await until(async () => (await shown()).every(({ json }) => json.status !== "SCHEDULED"), "it is not claimed");
  }, { viewport: where, url: LIMITED_URL });
}

await check("what cannot be done says why", async (console) => {
  await console.signIn("act");
  await console.view("bank");
  await console.page.$eval("form[data-action=start-recount] [name=from]", (field) => (field.value = "2026-01-01"));
  await console.page.click("form[data-action=start-recount] button");
  must((await console.problem()).includes("too many for one run"), "it does not say that the dates are too many");
}, { expected: [REFUSED] });

await check("a report is found and downloaded", async (console) => {
  await console.signIn("look");
  await console.view("reports");
  await console.page.click("#main td a[href^='#report?']");
  await console.page.waitForFunction(() => document.querySelector("#main h1")?.textContent.startsWith("Report "));
  const [link] = await console.page.$$eval("#main a[target=_blank]", (links) => links.map((link) => link.href));
  const file = await fetch(link);
  const text = gunzipSync(Buffer.from(await file.arrayBuffer())).toString();
  must(file.status === 200 && text.startsWith("paymentId,"), `the report begins with ${text.slice(0, 40)}`);
});

await check("nothing is stored", async (console) => {
  await console.signIn("look");
  for (const view of VIEWS) await console.view(view);
  const stored = await console.stored();
  const want = { local: 0, session: 0, cookie: "", databases: 0, caches: 0, workers: 0, name: "", state: null, cookies: 0 };
  must(JSON.stringify(stored) === JSON.stringify(want), `stored: ${JSON.stringify(stored)}`);
  const kept = await console.page.evaluate(() => Object.values(window).some((value) => typeof value === "string" && value.startsWith("eyJ")));
  must(!kept, "the token is a global variable");
  await console.page.reload();
  must(await console.page.$eval("#sign-out", (button) => button.hidden), "the token outlived the page");
  for (const response of console.responses.filter((response) => response.url().includes("/views/"))) {
    must(response.headers()["cache-control"] === "no-store", `${response.url()} may be stored`);
  }
});

for (const scheme of ["light", "dark"]) {
  await check(`the page of the provider, ${scheme}`, async (console) => {
    const query = {
      response_type: "code", client_id: "local-console", redirect_uri: `${BANK_URL}/console`, scope: "payments/inspect payments/operate",
      state: HOSTILE[0], code_challenge: "x".repeat(43), code_challenge_method: "S256",
    };
    await console.page.goto(`${BANK_URL}/oauth2/authorize?${new URLSearchParams(query)}`);
    must((await console.page.$$("button")).length === 3, "there are not three roles");
    await console.accessible();
    await console.isWhole();
    await console.clean();
    await console.page.goto(`${BANK_URL}/oauth2/authorize?${new URLSearchParams({ ...query, redirect_uri: HOSTILE[1] })}`);
    must((await console.text("main")).includes("onerror"), "it does not say what is wrong");
    await console.accessible();
    await console.isWhole();
  }, { scheme, viewport: PHONE, expected: [REFUSED] });
}

await check("by keyboard alone", async (console) => {
  await console.signIn("look", { keyboard: true });
  await console.heading();
  await console.tabTo('nav a[data-view="waiting"]');
  await console.page.keyboard.press("Enter");
  await console.page.waitForFunction(() => document.activeElement?.matches("#main h1") && document.activeElement.textContent === "Waiting");
  await console.page.evaluate(() => document.activeElement.blur());
  await console.tabTo("#find-text");
  await console.page.keyboard.type(day.settled.paymentId);
  await console.page.keyboard.press("Enter");
  await console.page.waitForFunction((id) => document.querySelector("#main").textContent.includes(id), {}, day.settled.transactionId);
});

await check("the skip link leads to the view", async (console) => {
  await console.signIn("look");
  await console.view("bank");
  await console.page.focus(".skip");
  await console.page.keyboard.press("Enter");
  must(await console.page.evaluate(() => document.activeElement?.id === "main"), "the focus is elsewhere");
  await pause(300);
  must((await console.text("#main h1")) === "Bank", "the view is gone");
});

await check("hostile texts are texts", async (console) => {
  await console.signIn("look");
  await console.view(`payment?id=${day.hostile.id}`);
  await console.page.$$eval("#main details", (all) => all.forEach((details) => details.setAttribute("open", "")));
  const shown = await console.text("#main");
  for (const text of HOSTILE) must(shown.includes(text) || shown.includes(JSON.stringify(text).slice(1, -1)), `not shown: ${text}`);
  await inert(console);
  await console.view("endpoints?id=shop");
  must((await console.text("#main")).includes(HOSTILE[1]), "the description is not shown");
  await inert(console);
  await console.view(`find?account=hostile&key=${encodeURIComponent(HOSTILE[0])}`);
  must((await console.text("#main")).includes("hostile"), "the payment is not found by its key");
  await inert(console);
  for (const text of HOSTILE) {
    await console.page.evaluate((text) => document.querySelector("#find-text").value = text, text);
    await console.page.evaluate(() => document.querySelectorAll("#main h1").forEach((h1) => h1.setAttribute("data-old", "")));
    await console.page.evaluate(() => document.querySelector("#find").requestSubmit());
    await console.heading();
    await inert(console);
    const encoded = encodeURIComponent(text);
    for (const hash of [`payment?id=${encoded}`, `day?date=${encoded}`, `list?date=${day.today}&status=${encoded}`, `find?account=${encoded}&key=x`]) {
      await console.page.evaluate((hash) => {
        document.querySelector("#problem").hidden = true;
        location.hash = hash;
      }, hash);
      await console.problem();
      await inert(console);
    }
  }
  const { status } = await own.ask("/webhook-endpoints/shop");
  must(status === 200, "a text deleted the endpoint");
}, { expected: [REFUSED] });
