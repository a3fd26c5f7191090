// Checks the console in Chromium. Needs BANK_URL, a sandbox that requires tokens, OPEN_URL, one that does not, and CHROMIUM.

import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { PROCESSED, create } from "./bank.mjs";
import { DESK, PHONE, must, pause, within } from "./browser.mjs";
import { BANK_URL, MOST, OPEN_URL, REFUSED, VIEWS, browser, check, day, inert, own } from "./harness.mjs";

/** Each view: accessible, as wide as the window, and with a heading that has the focus. */
async function everyView(console) {
  const problems = [];
  for (const view of VIEWS) {
    try {
      await console.view(view);
      await console.accessible();
      await console.isWhole();
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
      must((await console.heading()).includes("today"), "the first view is not today's");
      await everyView(console);
    }, { viewport, scheme });
  }
}

await check("the day's numbers", async (console) => {
  await console.signIn("look");
  await console.view(`day?date=${day.today}`);
  const tiles = await console.page.$$eval("#main .tiles a", (tiles) => tiles.map((tile) => tile.textContent.replaceAll(",", "")));
  for (const [status, count] of [["Processed", PROCESSED], ["Failed", 20], ["Pending", 20]]) {
    must(tiles.some((tile) => tile.startsWith(status + count)), `not ${count} ${status}: ${tiles.join("|")}`);
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
  await console.signOut();
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
  await console.signOut();
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

await import("./acting.mjs");
await import("./docs.mjs");
await import("./troubles.mjs");

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
  await console.page.waitForFunction(() => /Pending\s*21/.test(document.querySelector("#main").textContent), { timeout: 40_000 });
  must(await console.page.evaluate(() => document.activeElement?.id === "date"), "the refresh took the focus");
  await console.page.click("[data-refresh]");
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
  for (const part of ["#welcome", "noscript p"]) {
    const box = await (await console.page.$(part))?.boundingBox();
    must(box?.height > 0 && box.width > 0, `${part} is not painted`);
  }
}, { script: false });

await browser.close();
