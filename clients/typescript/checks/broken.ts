// Checks of answers that no bank gives, but something broken or hostile between could.

import { Bank } from "scheduled-payments";
import { answers, created, entry, keys, rejected } from "./batches.js";
import { type Answer, CREATED, PAYMENT, problem, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { day, errorOf, order, problemOf } from "./world.js";

/** Fails if a call does not throw a GatewayError with this status. */
async function broken(call: Promise<unknown>, status = 200): Promise<void> {
  const error = await errorOf(call);
  equal([error.name, error.status], ["GatewayError", status]);
}

check("broken-success", async () => {
  const notUtf8 = Buffer.from(JSON.stringify(PAYMENT).replace("GBP", "\u00ff"), "latin1");
  const texts = ["<html>", "", "[]", "null", "5", '"x"', "{}", '{"a": NaN}', "[".repeat(100_000)];
  for (const body of [...texts, notUtf8]) {
    const all: Answer[] = [{ status: 201, body }, { body }, { body }, CREATED];
    await withFake(all, async ({ bank, seen }) => {
      await broken(bank.create("acc-1", "key-1", order()), 201);
      await broken(bank.list("acc-1").toArray());
      await broken(bank.events());
      equal(seen.length, 3);
    });
  }
  // A body that cannot be unpacked was lost on its way.
  const packed: Answer = { status: 201, body: "no gzip", headers: { "Content-Encoding": "gzip" } };
  await withFake([packed], async ({ bank }) => {
    equal((await errorOf(bank.create("acc-1", "key-1", order()))).name, "NoAnswer");
  }, { attempts: 1 });
});

check("odd-amounts", async () => {
  for (const amount of ['"1"', "1.5", "NaN", "true", "[1]"]) {
    const odd = (value: unknown) => JSON.stringify(value).replace("12050", amount);
    const at = "2090-06-15T09:00:00Z";
    const event = { v: 1, id: "1", type: "x", at, epoch: 1, amountMinor: 12050 };
    const page = odd({ payments: [PAYMENT], nextCursor: null });
    const events = odd({ events: [event], nextCursor: "1.2.0", hasMore: false });
    const all = [{ status: 201, body: odd(PAYMENT) }, { body: page }, { body: page }, { body: events }];
    await withFake(all, async ({ bank }) => {
      await broken(bank.create("acc-1", "key-1", order()), 201);
      await broken(bank.list("acc-1").toArray());
      await broken(bank.due(day(0)).toArray());
      await broken(bank.events());
    });
  }
});

check("broken-problem", async () => {
  for (const errors of [5, [1], [{}], [{ pointer: 1, type: "x", detail: "y" }], {}]) {
    await withFake([{ status: 422, body: problem(422, "invalid-body", { errors }) }], async ({ bank }) => {
      await broken(bank.create("acc-1", "key-1", order()), 422);
    });
  }
});

check("odd-retry-after", async () => {
  for (const retryAfterSeconds of ["x", [1], -5, null]) {
    const body = problem(503, "throttled", { retryAfterSeconds });
    await withFake([{ status: 503, body }, CREATED], async ({ bank, pauses }) => {
      await bank.create("acc-1", "key-1", order());
      equal(pauses, [0.5]);
    });
    const busy = rejected("a", 503, "throttled", { retryAfterSeconds });
    await withFake(answers([busy], [created("a")]), async ({ bank, pauses }) => {
      equal((await bank.createAccountBatch("acc-1", [entry("a")])).map(({ statusCode }) => statusCode), [201]);
      equal(pauses, [0.5]);
    });
  }
  const body = problem(503, "throttled", { retryAfterSeconds: "x" });
  const once = { attempts: 1 };
  await withFake([{ status: 503, body }], async ({ bank }) => {
    const error = await problemOf(bank.create("acc-1", "key-1", order()));
    equal([error.kind, error.retryAfter], ["throttled", undefined]);
  }, once);
});

check("broken-token", async () => {
  const odd = ["soon", -1, [60], true].map((seconds) => ({ access_token: "t", expires_in: seconds }));
  for (const body of ["x", 5, "[]", {}, { access_token: 5 }, ...odd]) {
    await withFake([{ body }, CREATED], async ({ url, seen }) => {
      const issuer = { id: "id", secret: "secret", tokenUrl: `${url}/token` };
      const bank = new Bank(url, issuer, { retries: { attempts: 1 } });
      await broken(bank.create("acc-1", "key-1", order()));
      equal(seen.length, 1);
    });
  }
});

check("batch-mismatch", async () => {
  const [a, b] = [created("a"), created("b")];
  const entries = [entry("a"), entry("b")];
  for (const results of [[], [a], [a, b, a], [b, a], [a, created("c")], [rejected("b", 422, "x"), b]]) {
    await withFake(answers(results), async ({ bank }) => {
      await broken(bank.createAccountBatch("acc-1", entries));
    });
  }
  await withFake(answers([a], [a]), async ({ bank }) => {
    await broken(bank.createBatch([{ accountId: "acc-9", ...entry("a") }]));
    await broken(bank.createAccountBatch("acc-9", [entry("a")]));
  });
  // Nobody knows the key of an entry that cannot be read.
  const unnamed = { statusCode: 422, problem: problem(422, "x") };
  await withFake(answers([a, unnamed]), async ({ bank }) => {
    equal((await bank.createAccountBatch("acc-1", entries)).map(({ statusCode }) => statusCode), [201, 422]);
  });
  // Results of other entries in a repetition are ignored, and the results of the first request stay.
  const busy = rejected("b", 503, "throttled", { retryAfterSeconds: 1 });
  await withFake(answers([a, busy], [a]), async ({ bank, seen }) => {
    equal((await bank.createAccountBatch("acc-1", entries)).map(({ statusCode }) => statusCode), [201, 503]);
    equal(seen.map(keys), ["ab", "b"]);
  });
});

check("cursor-stuck", async () => {
  const page = { body: { payments: [PAYMENT], nextCursor: "same" } };
  await withFake([page, page, page], async ({ bank, seen }) => {
    await broken(bank.list("acc-1").toArray());
    equal(seen.length, 2);
  });
  const still = { events: [], nextCursor: "1.2.0" };
  await withFake([{ body: { ...still, hasMore: true } }, { body: { ...still, hasMore: false } }], async ({ bank }) => {
    await broken(bank.events("1.2.0"));
    equal((await bank.events("1.2.0")).nextCursor, "1.2.0");
  });
});

check("slow-body", async () => {
  // The signal that ends a request has the machine's clock, and no other.
  await withFake([{ status: 201, body: PAYMENT, cut: "slow" }], async ({ bank, seen }) => {
    const error = await errorOf(bank.create("acc-1", "key-1", order()));
    equal([error.name, seen.length], ["NoAnswer", 1]);
  }, { attempts: 1 }, "t", 0.2);
});
