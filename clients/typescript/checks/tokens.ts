// Checks of access tokens.

import { strict as assert } from "node:assert";
import { Bank } from "scheduled-payments";
import { type Answer, CREATED, GATEWAY_SLOW, PAYMENT, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { TODAY, TOKEN_URL, URL_OF_BANK, errorOf, order, problemOf } from "./world.js";

const CREDENTIALS = { id: "id", secret: "secret", tokenUrl: TOKEN_URL };

/** Returns an issuer's answer. */
function token(text: string, seconds: number): Answer {
  return { body: { access_token: text, expires_in: seconds, token_type: "Bearer" } };
}

check("token-required", async () => {
  const error = await errorOf(new Bank(URL_OF_BANK).get("acc-1", PAYMENT.paymentId));
  equal(error.status, 401);
});

check("forbidden", async () => {
  const bank = new Bank(URL_OF_BANK, { ...CREDENTIALS, scope: "payments/read" });
  equal(await bank.list("ts-none").toArray(), []);
  const error = await problemOf(bank.counts(TODAY, TODAY));
  equal([error.status, error.kind], [403, "forbidden"]);
  assert.match(error.detail, /payments\/inspect/);
});

check("credentials", async () => {
  equal((await new Bank(URL_OF_BANK, CREDENTIALS).counts(TODAY, TODAY)).length, 1);
});

check("token-callback", async () => {
  const texts = ["one", "two"];
  const asked = async () => texts.shift() ?? "none";
  const used = async ({ bank, seen }: { bank: Bank; seen: { headers: { authorization?: string } }[] }) => {
    await bank.create("acc-1", "key-1", order());
    equal(seen.map(({ headers }) => headers.authorization), ["Bearer one", "Bearer two"]);
  };
  await withFake([GATEWAY_SLOW, CREATED], used, {}, asked);
});

check("token-renewed", async () => {
  const answers = [GATEWAY_SLOW, token("one", 3600), CREATED, CREATED, token("two", 3600), CREATED];
  await withFake(answers, async ({ url, seen }) => {
    let now = 0;
    const clock = () => now;
    const scope = "payments/read a";
    const credentials = { id: "id", secret: "pass:word", tokenUrl: `${url}/token`, scope, clock };
    const bank = new Bank(url, credentials, { retries: { wait: async () => {}, random: () => 0 } });
    for (now of [0, 3539, 3540]) {
      await bank.create("acc-1", "key-1", order());
    }
    const used = seen.filter(({ path }) => path !== "/token").map(({ headers }) => headers.authorization);
    equal(used, ["Bearer one", "Bearer one", "Bearer two"]);
    const asked = seen.filter(({ path }) => path === "/token");
    equal(asked[0]?.body, "grant_type=client_credentials&scope=payments%2Fread+a");
    equal([asked.length, asked[0]?.headers.authorization], [3, "Basic aWQ6cGFzczp3b3Jk"]);
  });
});
