// A bank with a day of data in it: payments in every status, an amendment, a webhook endpoint, and what hostile clients send.

export const HOSTILE = [
  '<script>window.__pwned=1</script>',
  '<img src=x onerror=window.__pwned=2>',
  '<svg onload=window.__pwned=3>',
  '<details open ontoggle=window.__pwned=4>',
  '<iframe srcdoc=<script>parent.__pwned=5</script>></iframe>',
  '<a href=javascript:window.__pwned=6>x</a>',
  '</pre></details><b id=main>',
  '<div hx-get=/evil hx-trigger=load>x</div>',
  '<div data-hx-delete=/webhook-endpoints/shop data-hx-trigger=load>x</div>',
  '<p hx-on:load=window.__pwned=7 data-hx-on::load=window.__pwned=8>',
  "';alert(1);//`${alert(1)}`",
  '{{constructor.constructor(1)}}&lt;img src=x onerror=alert(1)&gt;',
  '<style>*{display:none}</style><meta http-equiv=refresh content=0;url=/evil>',
];

const ACCOUNTS = 8;

/** The number of the day's payments that are processed in the end: half of eighty, and two of hostile clients. */
export const PROCESSED = 42;

/** Makes requests to a bank, with a token if it wants one. */
export async function bank(url, wantsToken) {
  const ask = async (path, { method = "GET", body, headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      headers: { ...(body && { "Content-Type": "application/json" }), ...headers, ...(token && { Authorization: `Bearer ${token}` }) },
    });
    const text = await response.text();
    return { status: response.status, json: text.startsWith("{") ? JSON.parse(text) : undefined, headers: response.headers, text };
  };
  let token = null;
  if (wantsToken) {
    const response = await fetch(`${url}/oauth2/token`, { method: "POST", body: new URLSearchParams({ grant_type: "client_credentials" }) });
    token = (await response.json()).access_token;
  }
  return { url, ask };
}

export const must = ({ status, text, ...rest }, ...wanted) => {
  if (!wanted.includes(status)) throw new Error(`the bank answered ${status}: ${text}`);
  return { status, text, ...rest };
};

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Creates a payment. */
export async function create({ ask }, account, key, order) {
  const answer = await ask(`/accounts/${account}/payments`, { method: "POST", headers: { "Idempotency-Key": key }, body: order });
  return must(answer, 201).json.paymentId;
}

/** Fills a bank, and returns what its views are to show. */
export async function filled(bank) {
  const { ask } = bank;
  const clock = must(await ask("/sandbox/clock"), 200).json.now;
  // Noon of the next weekday but one, far from midnight.
  const noon = new Date(Date.parse(clock.slice(0, 10)) + 2.5 * 86_400_000);
  const today = noon.toISOString().slice(0, 10);
  must(await ask("/sandbox/clock", { method: "POST", body: { to: noon.toISOString() } }), 200);
  const later = (days) => new Date(noon.getTime() + days * 86_400_000).toISOString().slice(0, 10);
  const order = (more) => ({ payeeAccountId: "payee", amountMinor: 12_050, currency: "GBP", scheduledFor: today, ...more });

  must(await ask("/webhook-endpoints/shop", { method: "PUT", body: { url: "https://hooks.example.com/x", description: HOSTILE[1], enabled: false } }), 201);
  // The API has no such route, so the endpoint refuses its first event.
  must(await ask("/webhook-endpoints/broken", { method: "PUT", body: { url: `${bank.url}/hook`, description: "broken" } }), 201);
  const references = [undefined, "INV 2026/117", "SANDBOX-REFUSED", "SANDBOX-NEVER"];
  for (let number = 0; number < 80; number += 1) {
    const reference = references[number % references.length];
    const currency = ["GBP", "EUR"][number % 2];
    await create(bank, `acc-${number % ACCOUNTS}`, `day-${number}`, order({ currency, amountMinor: 1_000_000 + number, reference }));
  }
  const cancelled = await create(bank, "acc-1", "cancelled", order({ scheduledFor: later(3) }));
  must(await ask(`/accounts/acc-1/payments/${cancelled}/cancel`, { method: "POST" }), 200);
  const amended = await create(bank, "acc-1", "amended", order({ scheduledFor: later(5), data: { note: "before" } }));
  const change = { method: "PUT", headers: { "Idempotency-Key": "amended-once", "If-Match": '"1"' } };
  must(await ask(`/accounts/acc-1/payments/${amended}`, { ...change, body: order({ scheduledFor: later(6), payeeAccountId: "another-payee" }) }), 200);

  const hostile = {
    id: await create(bank, "hostile", HOSTILE[0], order({ data: { texts: HOSTILE, [HOSTILE[1]]: HOSTILE[2] } })),
    // The longest of what a client chooses freely.
    long: await create(bank, "a".repeat(48), "k".repeat(255), order({ payeeAccountId: "p".repeat(48), reference: "R".repeat(35), data: "x".repeat(6_000) })),
  };
  await refuses(bank, order);
  must(await ask("/sandbox/clock", { method: "POST", body: { advanceSeconds: 120 } }), 200);
  const settled = await settlement(bank, today);
  const { cursor } = must(await ask("/webhook-endpoints/broken"), 200).json;
  return { today, later, cancelled, amended, hostile, settled, cursor, report: await reported(bank, today), order };
}

/** Waits until a report is published, and returns its name. */
async function reported({ ask, url }, today) {
  for (let attempt = 0; attempt < 60; attempt += 1) {
    const list = must(await ask(`/console/views/reports?from=${today}`), 200).text;
    const name = /#report\?name=([^"]+)"/.exec(list)?.[1];
    if (name) return name;
    must(await ask("/sandbox/clock", { method: "POST", body: { advanceSeconds: 600 } }), 200);
  }
  throw new Error(`no report of ${today} is published at ${url}`);
}

/** A text that could be a script never gets into the other fields. */
async function refuses({ ask }, order) {
  for (const text of HOSTILE) {
    for (const wrong of [{ reference: text }, { payeeAccountId: text }, { currency: text }, { dateRule: text }]) {
      const headers = { "Idempotency-Key": "refused" };
      must(await ask("/accounts/acc-1/payments", { method: "POST", headers, body: order(wrong) }), 400, 422);
    }
    const account = `/accounts/${encodeURIComponent(text)}/payments`;
    must(await ask(account, { method: "POST", headers: { "Idempotency-Key": "refused" }, body: order({}) }), 400, 404);
    must(await ask("/webhook-endpoints/other", { method: "PUT", body: { url: text } }), 400, 422);
  }
}

/** Waits until the day is settled and counted, and returns a payment that was processed. */
async function settlement({ ask }, today) {
  for (let attempt = 0; attempt < 120; attempt += 1) {
    const list = must(await ask(`/payments?dueDate=${today}&status=PROCESSED&limit=100`), 200).json;
    const counts = must(await ask(`/counts?from=${today}&to=${today}`), 200).text;
    const count = Number(/"PROCESSED":(\d+)/.exec(counts)?.[1] ?? 0);
    const [{ accountId, paymentId } = {}] = list.payments;
    if (count === PROCESSED) return must(await ask(`/accounts/${accountId}/payments/${paymentId}`), 200).json;
    // Counting waits for a window of time to end.
    must(await ask("/sandbox/clock", { method: "POST", body: { advanceSeconds: 60 } }), 200);
    await pause(500);
  }
  throw new Error("the day is not settled after a minute");
}
