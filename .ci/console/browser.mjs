// A page of the console in Chromium, and everything that may go wrong in it.

import puppeteer from "puppeteer-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const start = () =>
  puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    headless: true,
    // A container may have no user namespaces. The only pages are the bank's and the checks'.
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"],
  });

export const must = (is, what) => {
  if (!is) throw new Error(what);
};

/** Waits for something, but not for ever. */
export const within = (seconds, promise, what) =>
  Promise.race([promise, new Promise((_, reject) => setTimeout(reject, seconds * 1_000, new Error(`${what}: not within ${seconds} s`)))]);

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const PHONE = { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
export const DESK = { width: 1280, height: 900 };

/** A page, what went wrong in it, and what it received. */
export class Console {
  static async open(browser, url, { viewport = DESK, scheme = "light", script = true } = {}) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    const console = new Console(context, page, url);
    await page.setJavaScriptEnabled(script);
    await page.setViewport(viewport);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    console.#watch(page);
    await page.evaluateOnNewDocument(() => {
      window.__violations = [];
      document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
        window.__violations.push(`${violatedDirective} ${blockedURI}`));
    });
    await page.goto(`${url}/console`, { waitUntil: "load" });
    return console;
  }

  constructor(context, page, url) {
    Object.assign(this, { context, page, url, wrong: [], responses: [], dialogs: 0 });
  }

  #watch(page) {
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) this.wrong.push(`${message.type()}: ${message.text()} ${message.location().url ?? ""}`);
    });
    page.on("pageerror", (error) => this.wrong.push(`thrown: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.wrong.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss().catch(() => {});
    });
    page.on("requestfailed", (request) => {
      if (request.failure()?.errorText !== "net::ERR_ABORTED") this.wrong.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
    });
    page.on("response", (response) => this.responses.push(response));
  }

  /** Fails if something went wrong that none of these explains, then forgets it. */
  async clean(...expected) {
    const violations = await this.page.evaluate(() => window.__violations ?? []);
    const wrong = [...this.wrong, ...violations].filter((line) => !expected.some((pattern) => pattern.test(line)));
    this.wrong = [];
    must(wrong.length === 0, `it went wrong: ${wrong.join("; ")}`);
    must((await this.page.evaluate(() => window.__pwned)) === undefined, "a script of a client ran");
  }

  /** Signs in through the popup, by mouse or by keyboard. */
  async signIn(role, { keyboard = false } = {}) {
    const { page } = this;
    const start = ["act", "approve"].includes(role) ? "#sign-in-to-act" : "#sign-in";
    await page.waitForSelector(`${start}:not([hidden])`);
    const opened = new Promise((resolve) => page.once("popup", resolve));
    if (keyboard) {
      await this.tabTo(start);
      await page.keyboard.press("Enter");
    } else {
      await page.click(start);
    }
    const popup = await within(15, opened, "the popup");
    this.#watch(popup);
    const button = `button[value="${role}"]`;
    await popup.waitForSelector(button);
    const closed = new Promise((resolve) => popup.once("close", resolve));
    if (keyboard) {
      await popup.bringToFront();
      await tab(popup, button);
      await popup.keyboard.press("Enter");
    } else {
      // The popup may be gone before the click is reported.
      await popup.click(button).catch(() => {});
    }
    await within(15, closed, "the popup's end");
    await page.bringToFront();
    await page.waitForSelector("#sign-out:not([hidden])");
  }

  /** Signs out, by the menu. */
  async signOut() {
    await this.page.click("header > details.menu:last-child summary");
    await this.page.click("#sign-out");
  }

  tabTo(selector) {
    return tab(this.page, selector);
  }

  /** Opens a view, and waits until it is there. */
  async view(hash) {
    const { page } = this;
    // Of an address that is there already nothing is asked, or it was asked a moment ago, when a dialog closed.
    if ((await page.evaluate(() => location.hash)) === `#${hash}`) await this.view(hash === "ahead" ? "day" : "ahead");
    const path = `/console/views/${hash.split("?")[0]}`;
    await page.evaluate(() => document.querySelectorAll("#main h1").forEach((h1) => h1.setAttribute("data-old", "")));
    const response = page.waitForResponse((response) => new URL(response.url()).pathname === path, { timeout: 15_000 });
    await page.evaluate((hash) => {
      location.hash = `#${hash}`;
    }, hash);
    const status = (await response).status();
    must(status === 200, `the view is ${status}`);
    await this.heading();
  }

  /** Waits for another heading than before, and returns it. */
  async heading() {
    const heading = await this.page.waitForSelector("#main h1:not([data-old])", { timeout: 15_000 });
    return heading.evaluate((h1) => h1.textContent);
  }

  text(selector) {
    return this.page.$eval(selector, (element) => element.textContent);
  }

  async problem() {
    await this.page.waitForSelector("#problem:not([hidden])", { timeout: 15_000 });
    return this.text("#problem");
  }

  /** Fails on what excludes people: what axe calls serious or critical, of these rules or of all. */
  async accessible(...rules) {
    // A colour that is still changing has the contrast of neither end.
    await this.page.evaluate(() => Promise.race([
      Promise.allSettled(document.getAnimations().map((animation) => animation.finished)),
      new Promise((resolve) => setTimeout(resolve, 2_000)),
    ]).then(() => null));
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(async (rules) => {
      const { violations } = await window.axe.run(document, { preload: false, ...(rules.length > 0 && { runOnly: rules }) });
      const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      return grave.map(({ id, nodes }) => `${id} at ${nodes.map(({ target, failureSummary }) => `${target} (${failureSummary})`).join(", ")}`);
    }, rules);
    must(found.length === 0, `not accessible: ${found.join("; ")}`);
  }

  /** Fails if the page is wider than the window. */
  async fits() {
    const [wide, window] = await this.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    must(wide <= window, `it is ${wide} px wide in a window of ${window}`);
  }

  /** Fails if the page is wider than the window, or a text is cut. */
  async isWhole() {
    await this.fits();
    const cut = await this.page.evaluate(cutTexts);
    must(cut.length === 0, `texts are cut: ${cut.slice(0, 5).join("; ")}`);
  }

  /** The browser's storage for this page. */
  async stored() {
    const inPage = await this.page.evaluate(async () => ({
      local: localStorage.length,
      session: sessionStorage.length,
      cookie: document.cookie,
      databases: (await indexedDB.databases()).length,
      caches: (await caches.keys()).length,
      workers: (await navigator.serviceWorker.getRegistrations()).length,
      name: window.name,
      state: history.state,
    }));
    return { ...inPage, cookies: (await this.context.cookies()).length };
  }

  close() {
    return this.context.close();
  }
}

/**
 * The texts that nobody can read to their ends: outside of the window, or in an element that hides what is too long for it, unless its
 * title has the text or it is a scroller that has the focus by Tab. Runs in the page.
 */
function cutTexts() {
  const cut = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const name = (element, text) => `${element.tagName.toLowerCase()}.${element.className} “${text.trim().slice(0, 40)}”`;
  // Texts for screen readers alone are 999 px to the left.
  const isOnlyRead = (style) => style.position === "absolute" && style.left === "-999px";
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (data.trim() === "" || !parentElement.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) continue;
    const around = [];
    for (let element = parentElement; element !== document.documentElement; element = element.parentElement) around.push(element);
    const styles = around.map((element) => getComputedStyle(element));
    if (styles.some(isOnlyRead)) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const isIn = ({ left, right, width }) => width === 0 || (left > -1 && right < innerWidth + 1);
    if (![...range.getClientRects()].every(isIn)) cut.add(`outside: ${name(parentElement, data)}`);
    around.forEach((element, place) => {
      const { overflowX, overflowY } = styles[place];
      const isWide = overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
      const isHigh = ["hidden", "clip"].includes(overflowY) && element.scrollHeight > element.clientHeight + 1;
      const isScroller = ["auto", "scroll"].includes(overflowX) && element.tabIndex >= 0;
      if ((isWide && !isScroller && !element.title.includes(data.trim())) || isHigh) cut.add(`hidden: ${name(element, data)}`);
    });
  }
  return [...cut];
}

/** Presses Tab until the element has the focus, which must be visible. */
async function tab(page, selector) {
  for (let presses = 0; presses < 200; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((selector) => document.activeElement?.matches(selector), selector)) {
      const shown = await page.evaluate(() => document.activeElement.matches(":focus-visible"));
      must(shown, `nothing shows that ${selector} has the focus`);
      return;
    }
  }
  throw new Error(`no Tab leads to ${selector}`);
}
