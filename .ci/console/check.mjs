// Checks the console in Chromium. Needs BANK_URL, a sandbox that requires tokens, OPEN_URL, one that does not, and CHROMIUM.

import { createServer } from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
import { HOSTILE, PROCESSED, bank, create, filled } from "./bank.mjs";
import { Console, DESK, PHONE, must, pause, start, within } from "./browser.mjs";

const { BANK_URL, OPEN_URL } = process.env;
/** The most that a first visit may load, compressed. */
const MOST = 60 * 1024;
const REFUSED = /status of 40[013]/;

const browser = await start();
const own = await bank(BANK_URL, true);
const day = await filled(own);
const VIEWS = [
  "day", `day?date=${day.later(5)}`, "ahead", `ahead?from=${day.later(31)}`, `list?date=${day.today}&status=PROCESSED`,
  `list?date=${day.later(400)}&status=SCHEDULED`, "find", "find?text=nothing", `find?text=${day.settled.transactionId}`,
  `find?account=acc-1&key=amended`, `payment?id=${day.settled.paymentId}`, `payment?id=${day.amended}`, `payment?id=${day.cancelled}`,
  `payment?id=${day.hostile.id}`, `payment?id=${day.hostile.long}`, "waiting", "endpoints", "bank", "audit",
  "queues", "sample?queue=dispatch-failures", "reports", `reports?from=${day.today}`, `report?name=${day.report}`,
];

/** Runs a check in a page of its own. */
async function check(name, run, options = {}) {
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

/** Each view: accessible, as wide as the window, and with a heading that has the focus. */
async function everyView(console) {
  const problems = [];
  for (const view of VIEWS) {
    try {
      await console.view(view);
      await console.accessible();
      await console.fits();
      await console.clean();
      must(await console.page.evaluate(() => document.activeElement?.matches("#main h1")), "its heading has not the focus");
      must((await console.page.title()).startsWith(await console.text("#main h1")), "the title does not name it");
    } catch (error) {
      problems.push(`${view}: ${error.message}`);
    }
  }
  must(problems.length === 0, problems.join("\n    "));
}

for (const scheme of ["light", "dark"]) {
  for (const [name, viewport] of Object.entries({ phone: PHONE, desk: DESK })) {
    await check(`every view, ${name}, ${scheme}`, async (console) => {
      await console.accessible();
      await console.signIn("look");
      must((await console.heading()).includes(day.today), "the first view is not today's");
      await everyView(console);
    }, { viewport, scheme });
  }
}

await check("the day's numbers", async (console) => {
  await console.signIn("look");
  await console.view(`day?date=${day.today}`);
  const rows = await console.page.$$eval("#main tr", (rows) => rows.map((row) => row.textContent.replaceAll("\u202f", "")));
  for (const [status, count] of [["PROCESSED", PROCESSED], ["FAILED", 20], ["PENDING", 20]]) {
    must(rows.some((row) => row.includes(status) && row.endsWith(count)), `not ${count} ${status}: ${rows.join("|")}`);
  }
  await console.view(`payment?id=${day.settled.paymentId}`);
  must((await console.text("#main")).includes(day.settled.transactionId), "the transaction is not shown");
});

await check("a bank without tokens shows a view at once", async (console) => {
  await console.heading();
  must(await console.page.$eval("#sign-in", (button) => button.hidden), "there is nothing to sign in to");
}, { url: OPEN_URL });

await check("without a token there is no view", async (console) => {
  await console.page.evaluate(() => {
    location.hash = "#bank";
  });
  await pause(500);
  must((await console.page.$("#main h1")) === null, "a view is there");
  must(!console.responses.some((response) => response.url().includes("/views/")), "a view was asked for");
  for (const view of VIEWS) {
    const { status } = await fetch(`${BANK_URL}/console/views/${view}`);
    must(status === 401, `${view} is ${status}`);
  }
});

await check("a customer is refused", async (console) => {
  await console.signIn("customer");
  must((await console.problem()).includes("payments/inspect"), "it does not say what is missing");
  must((await console.page.$("#main h1")) === null, "a view is there");
  await console.accessible();
}, { expected: [REFUSED] });

await check("a second sign-in after one that was given up", async (console) => {
  const opened = new Promise((resolve) => console.page.once("popup", resolve));
  await console.page.click("#sign-in");
  const popup = await within(15, opened, "the popup");
  await popup.waitForSelector("button");
  await popup.close();
  await console.signIn("look");
  await console.heading();
});

await check("what no sign-in asked for is ignored", async (console) => {
  const other = await console.context.newPage();
  await other.goto(`${BANK_URL}/console?code=x&state=y`).catch(() => {});
  const signed = await console.page.$eval("#sign-out", (button) => !button.hidden);
  must(!signed && !console.responses.some((response) => response.url().includes("/oauth2/token")), "it took a stranger's code");
});

await check("signed out, nothing is left", async (console) => {
  await console.signIn("look");
  await console.view(`payment?id=${day.amended}`);
  await console.page.click("#sign-out");
  await console.page.waitForSelector("#sign-in:not([hidden])");
  const page = await console.page.evaluate(() => document.documentElement.outerHTML);
  must(!page.includes("another-payee") && (await console.page.$("#main h1")) === null, "the view is still there");
  await console.page.goBack().catch(() => {});
  await pause(500);
  must((await console.page.$("#main h1")) === null, "the view came back");
});

await check("a token that has ended signs out", async (console) => {
  await console.signIn("look");
  await console.heading();
  await console.page.setRequestInterception(true);
  console.page.on("request", (request) =>
    request.url().includes("/views/") ? request.respond({ status: 401, contentType: "application/json", body: '{"message":"Unauthorized"}' }) : request.continue());
  await console.page.evaluate(() => {
    location.hash = "#bank";
  });
  await console.page.waitForSelector("#sign-in:not([hidden])");
  must((await console.page.$("#main h1")) === null, "the view is still there");
}, { expected: [REFUSED] });

/** Delays the answers of a view. */
async function slow(console, view) {
  await console.page.setRequestInterception(true);
  console.page.on("request", async (request) => {
    if (request.url().includes(`/views/${view}`)) await pause(1500);
    await request.continue().catch(() => {});
  });
}

await check("what comes late is not shown", async (console) => {
  await console.signIn("look");
  await console.heading();
  await slow(console, "waiting");
  for (const hash of ["#waiting", "#endpoints", "#bank"]) {
    await console.page.evaluate((hash) => {
      location.hash = hash;
    }, hash);
    await pause(50);
  }
  await pause(2500);
  must((await console.text("#main h1")) === "Bank", "another view than the address says is shown");
  await console.page.evaluate(() => {
    location.hash = "#waiting";
  });
  await pause(50);
  await console.page.click("#sign-out");
  await pause(2500);
  must((await console.page.$("#main h1")) === null, "a view came after signing out");
}, { expected: [/ERR_ABORTED/] });

await check("it asks for no right to act", async (console) => {
  const opened = new Promise((resolve) => console.page.once("popup", resolve));
  await console.page.waitForSelector("#sign-in:not([hidden])");
  await console.page.click("#sign-in");
  const popup = await opened;
  await popup.waitForSelector("button[value=look]");
  must(new URL(popup.url()).searchParams.get("scope") === "openid payments/inspect", `it asks for ${popup.url()}`);
  must(await popup.evaluate(() => window.opener === null), "the provider has hold of the console's window");
  await popup.close();
});

await check("who only looks is shown no action", async (console) => {
  await console.signIn("look");
  for (const view of ["bank", "endpoints", "queues", `payment?id=${day.amended}`]) {
    await console.view(view);
    const shown = await console.page.$$eval("form[data-action]", (forms) => forms.filter((form) => form.checkVisibility()).length);
    must(shown === 0, `${view} shows ${shown}`);
  }
});

for (const where of [PHONE, DESK]) {
  await check(`a payment is cancelled after a preview, and the trail says so, ${where === PHONE ? "phone" : "desk"}`, async (console) => {
    const id = await create(own, "acc-1", `to-cancel-${where.width}`, day.order({ scheduledFor: day.later(20) }));
    await console.signIn("act");
    await console.view(`payment?id=${id}`);
    await console.page.click("form[data-action=cancel] button");
    await console.page.waitForSelector("#dialog[open] #dialog-title");
    must((await console.text("#dialog")).includes(id), "the preview does not name it");
    must((await own.ask(`/accounts/acc-1/payments/${id}`)).json.status === "SCHEDULED", "the preview did it");
    await console.accessible();
    await console.fits();
    await console.page.click("#dialog form[data-action=cancel] button");
    await console.page.waitForFunction(() => document.querySelector("#dialog form[data-action]") === null);
    must((await own.ask(`/accounts/acc-1/payments/${id}`)).json.status === "CANCELLED", "it is not cancelled");
    await console.accessible();
    await console.page.keyboard.press("Escape");
    await console.page.waitForFunction(() => !document.querySelector("#dialog").open);
    await console.page.waitForFunction(() => document.querySelector("#main").textContent.includes("CANCELLED"));
    await console.view("audit");
    must((await console.text("#main")).includes(id), "the trail does not have it");
  }, { viewport: where });
}

/** Every other action: where its form is, and what an operator types into it. */
const ACTS = [
  ["bank", "start-sweep"], ["bank", "start-redrive"], ["bank", "start-report"], ["bank", "start-archive"], ["bank", "look-for-redates"],
  ["bank", "start-recount", { from: day.today, to: day.today }],
  ["bank", "redate", { calendar: "GB", from: day.later(1), to: day.later(14) }],
  ["queues", "move-dead-letters"],
  ["endpoints", "test-endpoint"], ["endpoints", "skip-event"], ["endpoints", "replay-endpoint", { after: day.cursor }],
];

await check("every action is previewed, done and in the trail, phone", async (console) => {
  await console.signIn("act");
  for (const [view, action, typed] of ACTS) {
    // From another view: the address of this one may be there already, and is asked for again when the dialog closes.
    await console.view("ahead");
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
    await console.fits();
    await console.page.click(`#dialog form[data-action=${action}] button`);
    await console.page.waitForSelector("#dialog[open] ul li", { timeout: 15_000 }).catch(async () => {
      throw new Error(`nothing came of ${action}: ${await console.text("#dialog")}`);
    });
    must(!(await console.text("#dialog ul")).includes("refused"), `${action}: ${await console.text("#dialog ul")}`);
    await console.accessible();
    await console.page.keyboard.press("Escape");
    await console.page.waitForFunction(() => !document.querySelector("#dialog").open);
  }
  await console.view("audit");
  const trail = await console.page.$$eval("#main tbody tr", (rows) => rows.map((row) => row.textContent));
  for (const [, action] of ACTS) must(trail.some((row) => row.includes(action)), `the trail does not have ${action}`);
}, { viewport: PHONE });

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
    await console.fits();
    await console.clean();
    await console.page.goto(`${BANK_URL}/oauth2/authorize?${new URLSearchParams({ ...query, redirect_uri: HOSTILE[1] })}`);
    must((await console.text("main")).includes("onerror"), "it does not say what is wrong");
    await console.accessible();
    await console.fits();
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
  await console.view("endpoints");
  must((await console.text("#main")).includes(HOSTILE[1]), "the description is not shown");
  await inert(console);
  await console.view(`find?account=hostile&key=${encodeURIComponent(HOSTILE[0])}`);
  must((await console.text("#main")).includes("hostile"), "the payment is not found by its key");
  await inert(console);
  for (const text of HOSTILE) {
    await console.page.evaluate((text) => document.querySelector("#find-text").value = text, text);
    await console.page.evaluate(() => document.querySelectorAll("#main h1").forEach((h1) => h1.setAttribute("data-old", "")));
    await console.page.click("#find button");
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

/** Fails if something that could act came into the page. */
async function inert(console) {
  const active = "script, img, iframe, object, embed, style, meta, link, base, [onerror], [onload], [ontoggle], [srcdoc], [hx-get], [data-hx-delete]";
  const found = await console.page.evaluate((active) => {
    const inside = [...document.querySelectorAll("#main, #problem, #status")];
    return inside.flatMap((part) => [...part.querySelectorAll(active)].map((element) => element.outerHTML))
      .concat([...document.querySelectorAll("#problem *, #status *, a[href^='javascript' i]")].map((element) => element.outerHTML));
  }, active);
  must(found.length === 0, `it is in the page: ${found.join(", ")}`);
  must(console.responses.every((response) => !response.url().includes("/evil")), "a text sent a request");
}

await check("nothing inline runs", async (console) => {
  const { page } = console;
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.__inline = 1";
    document.head.append(script);
    const outside = document.createElement("script");
    outside.src = "https://example.com/x.js";
    document.head.append(outside);
    document.querySelector("#main").insertAdjacentHTML("beforeend", "<img src=x onerror=window.__inline=2><b onclick=window.__inline=3 style=color:red>x</b>");
    document.querySelector("#main b").click();
  });
  await pause(300);
  const violations = await page.evaluate(() => window.__violations);
  must(violations.some((line) => line.startsWith("script-src")), "the policy blocks no script");
  must((await page.evaluate(() => window.__inline)) === undefined, "a script ran");
}, { expected: [/Content Security Policy/, /^(script|style|img)-src/, /example\.com/, /status of 40[14]/] });

await check("an address leads to views alone", async (console) => {
  await console.signIn("look");
  await console.heading();
  const paths = [`payments?dueDate=${day.today}`, "webhook-endpoints", "docs", "console"];
  for (const path of paths) {
    for (const up of ["../../", "/../../../", "..%2F..%2F", "%2e%2e/%2e%2e/", "day/../../../", "\\..\\..\\..\\"]) {
      await console.page.evaluate((hash) => {
        location.hash = hash;
      }, up + path);
      await pause(100);
      await inert(console);
      const outside = console.responses.map((response) => new URL(response.url()).pathname)
        .filter((path, place) => /^http/.test(console.responses[place].url()) && !/^\/(console(\/assets\/[^/]+|\/views\/[^/]+)?|oauth2\/(authorize|token))$/.test(path));
      must(outside.length === 0, `#${up}${path} asked for ${outside}`);
    }
  }
}, { expected: [REFUSED, /status of 404/] });

await check("a view refreshes itself until it is paused", async (console) => {
  await console.signIn("look");
  await console.view(`day?date=${day.today}`);
  await create(own, "acc-live", "live", day.order({ reference: "SANDBOX-NEVER" }));
  await own.ask("/sandbox/clock", { method: "POST", body: { advanceSeconds: 120 } });
  await console.page.focus("#date");
  await console.page.waitForFunction(() => /PENDING\s*21/.test(document.querySelector("#main").textContent), { timeout: 40_000 });
  must(await console.page.evaluate(() => document.activeElement?.id === "date"), "the refresh took the focus");
  await console.page.click("#live");
  const count = () => console.responses.filter((response) => response.url().includes("/views/")).length;
  await pause(500);
  const before = count();
  await pause(12_000);
  must(count() === before, "it was refreshed while paused");
});

await check("a bank that does not answer", async (console) => {
  await console.signIn("look");
  await console.heading();
  await console.page.setOfflineMode(true);
  await console.page.evaluate(() => {
    location.hash = "#bank";
  });
  must((await console.problem()).includes("did not answer"), "nothing says so");
  await console.page.setOfflineMode(false);
  await console.view("waiting");
}, { expected: [/ERR_INTERNET_DISCONNECTED/, /Failed to fetch/] });

await check("no frame shows it", async (console) => {
  const frames = createServer((request, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(["/console", "/oauth2/authorize"].map((path) => `<iframe src="${BANK_URL}${path}"></iframe>`).join(""));
  });
  await new Promise((resolve) => frames.listen(0, "127.0.0.1", resolve));
  try {
    const page = await console.context.newPage();
    await page.goto(`http://127.0.0.1:${frames.address().port}/`, { waitUntil: "load" });
    const children = page.frames().filter((frame) => frame !== page.mainFrame());
    must(children.length === 2, "there are no frames");
    for (const frame of children) {
      must(!frame.url().startsWith(BANK_URL) || (await frame.evaluate(() => document.body?.children.length ?? 0)) === 0, `a frame shows ${frame.url()}`);
    }
  } finally {
    frames.close();
  }
});

await check("it is light", async (console) => {
  await console.page.waitForNetworkIdle();
  let bytes = 0;
  for (const response of console.responses.filter((response) => response.url().startsWith(BANK_URL))) {
    bytes += gzipSync(await response.buffer()).length;
  }
  must(console.responses.every((response) => response.url().startsWith(BANK_URL) || response.url().startsWith("data:")), "it loads from elsewhere");
  must(console.responses.filter((response) => response.url().startsWith(BANK_URL)).length === 4, "it is not a page, two scripts and a style");
  must(bytes <= MOST, `it weighs ${bytes} bytes`);
  globalThis.console.log(`    the page weighs ${bytes} bytes, compressed`);
});

await check("without JavaScript it says what it needs", async (console) => {
  const text = await console.text("body");
  must(text.includes("needs JavaScript"), text);
  for (const part of ["header", "nav a", "#welcome", "noscript p"]) {
    const box = await (await console.page.$(part))?.boundingBox();
    must(box?.height > 0 && box.width > 0, `${part} is not painted`);
  }
}, { script: false });

await browser.close();
