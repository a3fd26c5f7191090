// Checks the page of the API's description, /docs.

import { DESK, PHONE, must } from "./browser.mjs";
import { OPEN_URL, check } from "./harness.mjs";

/** The most pixels of an operation with its responses folded; unfolded, it has three times as many. */
const HIGHEST = { [PHONE.width]: 4_500, [DESK.width]: 2_500 };
const CREATE = "#operations-Accounts-createPayment";

for (const [name, viewport] of Object.entries({ phone: PHONE, desk: DESK })) {
  await check(`the API's page, ${name}`, async (console) => {
    const { page } = console;
    await page.goto(`${OPEN_URL}/docs`, { waitUntil: "load" });
    await page.waitForSelector(CREATE);
    must((await page.title()).startsWith("Scheduled payments"), `the title is ${await page.title()}`);
    must((await page.evaluate(() => document.documentElement.clientWidth)) === viewport.width, "it is shown smaller than it is");
    must((await page.$(".topbar")) === null, "there is a bar of another program");
    must(!(await console.text("#servers")).includes("`"), "a server has backticks");
    await console.fits();
    await page.click(`${CREATE} .opblock-summary-control`);
    await page.waitForSelector(`${CREATE} .responses-table details`);
    must((await page.$$("details[open]")).length === 0, "a response is unfolded");
    const high = await page.$eval(CREATE, (operation) => operation.getBoundingClientRect().height);
    must(high <= HIGHEST[viewport.width], `an operation has ${high} px`);
    const lines = await page.$$eval(":is(.renderedMarkdown code, .microlight)", (all) =>
      all.map((code) => parseFloat(getComputedStyle(code).lineHeight) / parseFloat(getComputedStyle(code).fontSize)));
    must(lines.length > 10 && lines.every((height) => height > 1.59), `the height of code's lines is ${Math.min(...lines)}`);
    await page.$$eval("details", (all) => all.slice(0, 4).forEach((details) => (details.open = true)));
    await page.click(`${CREATE} .try-out__btn`);
    await (await page.waitForSelector(`${CREATE} .execute`)).evaluate((button) => button.click());
    await page.waitForSelector(".live-responses-table .response-col_status");
    must((await console.text(".live-responses-table tbody .response-col_status")).startsWith("201"), "the example is rejected");
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      await page.waitForFunction((is) => document.documentElement.classList.contains("dark-mode") === is, { timeout: 5_000 }, value === "dark");
      // Its colours are the only part of axe that Swagger UI can be held to.
      await console.accessible("color-contrast");
      await console.fits();
    }
  }, { viewport, url: OPEN_URL });
}
