// Checks of what is sent again, and when.

import { strict as assert } from "node:assert";
import { Bank } from "scheduled-payments";
import { type Answer, CREATED, type Fake, GATEWAY_SLOW, PAYMENT, problem, throttled, withFake } from "./fake.js";
import { check, equal } from "./suite.js";
import { errorOf, order, problemOf } from "./world.js";

/** Fails if not the same request, with the same key, came so many times. */
function same({ seen }: Fake, times: number): void {
  equal(seen.length, times);
  for (const { path, body, headers } of seen) {
    equal([path, body], [seen[0]?.path, seen[0]?.body]);
    equal([headers["idempotency-key"], headers["x-request-id"]], ["key-1", "mine"]);
  }
}

/** Returns the id of the payment that is created in the end. */
async function create({ bank }: Fake): Promise<string> {
  return (await bank.create("acc-1", "key-1", order({ data: { n: 1 } }), { requestId: "mine" })).payment.paymentId;
}

check("retry-after", async () => {
  await withFake([throttled(7), CREATED], async (fake) => {
    equal(await create(fake), PAYMENT.paymentId);
    same(fake, 2);
    equal(fake.pauses, [7]);
  });
  // Without the header, the problem says it.
  const body = problem(503, "unavailable", { retryAfterSeconds: 3 });
  await withFake([{ status: 503, body }, CREATED], async (fake) => {
    await create(fake);
    equal(fake.pauses, [3]);
  });
});

check("pauses-double", async () => {
  await withFake([throttled(2), throttled(2), throttled(2), CREATED], async (fake) => {
    await create(fake);
    equal(fake.pauses, [2, 4, 8]);
  });
  const jitter = async (fake: Fake) => {
    await create(fake);
    equal(fake.pauses, [2.5, 5]);
  };
  await withFake([throttled(2), throttled(2), CREATED], jitter, { random: () => 1 });
});

check("gateway-429", async () => {
  await withFake([{ status: 429, body: { message: "Too Many Requests" } }, CREATED], async (fake) => {
    await create(fake);
    same(fake, 2);
    equal(fake.pauses, [0.5]);
  });
});

check("gateway-504", async () => {
  await withFake([GATEWAY_SLOW, GATEWAY_SLOW, CREATED], async (fake) => {
    await create(fake);
    same(fake, 3);
  });
});

check("amend-retried", async () => {
  const amended: Answer = { status: 200, body: PAYMENT, headers: { "Idempotent-Replayed": "true" } };
  await withFake([throttled(1), { cut: "before" }, amended], async (fake) => {
    const options = { version: 7, requestId: "mine" };
    const answer = await fake.bank.amend("acc-1", PAYMENT.paymentId, "key-1", order({ data: { n: 1 } }), options);
    equal([answer.payment.paymentId, answer.replayed], [PAYMENT.paymentId, true]);
    same(fake, 3);
    equal(fake.seen.map(({ headers }) => headers["if-match"]), ['"7"', '"7"', '"7"']);
  });
});

check("cut-connection", async () => {
  await withFake([{ cut: "before" }, { ...CREATED, cut: "within" }, CREATED], async (fake) => {
    equal(await create(fake), PAYMENT.paymentId);
    same(fake, 3);
  });
  const silent = async (fake: Fake) => {
    const error = await errorOf(create(fake));
    equal([error.name, error.status], ["NoAnswer", undefined]);
  };
  await withFake([{ cut: "before" }, { cut: "before" }], silent, { attempts: 2 });
});

check("silent-server", async () => {
  const silent = async (fake: Fake) => {
    const error = await errorOf(create(fake));
    equal([error.name, error.status, fake.pauses], ["NoAnswer", undefined, [0.5]]);
    same(fake, 2);
  };
  await withFake([{ cut: "never" }, { cut: "never" }], silent, { attempts: 2 }, "t", 0.2);
});

check("refused-connection", async () => {
  let closed = "";
  await withFake([], async ({ url }) => {
    closed = url;
  });
  const error = await errorOf(new Bank(closed, "t", { retries: { attempts: 1 } }).calendars());
  equal([error.name, error.status], ["NoAnswer", undefined]);
  assert(error.detail.includes(`${new URL(closed).host}: `) && error.detail.includes("ECONNREFUSED"), error.detail);
});

check("internal-once", async () => {
  const internal: Answer = { status: 500, body: problem(500, "internal", { requestId: "r-1" }) };
  await withFake([internal, CREATED], async (fake) => {
    await create(fake);
    same(fake, 2);
  });
  const gateway = { status: 500, body: { message: "Internal Server Error" } };
  await withFake([internal, GATEWAY_SLOW, gateway, CREATED], async (fake) => {
    equal((await errorOf(create(fake))).status, 500);
    same(fake, 3);
  });
});

check("no-retry-of-4xx", async () => {
  for (const status of [400, 401, 403, 404, 409, 412, 413, 415, 422, 428]) {
    await withFake([{ status, body: problem(status, "some") }, CREATED], async (fake) => {
      equal((await problemOf(create(fake))).status, status);
      same(fake, 1);
    });
  }
});

check("attempts-bounded", async () => {
  const bounded = async (fake: Fake) => {
    equal((await problemOf(create(fake))).kind, "throttled");
    same(fake, 3);
    equal(fake.pauses, [1, 2]);
  };
  await withFake(Array(4).fill(throttled(1)), bounded, { attempts: 3 });
});

check("time-bounded", async () => {
  const bounded = async (fake: Fake) => {
    equal((await problemOf(create(fake))).retryAfter, 10);
    same(fake, 3);
    equal(fake.pauses, [10, 20]);
  };
  await withFake(Array(4).fill(throttled(10)), bounded, { totalSeconds: 60 });
});

check("gateway-error", async () => {
  const tooLarge = "Request Entity Too Large";
  for (const [status, body, message] of [[413, { message: tooLarge }, tooLarge], [502, "<p>", "<p>"]] as const) {
    await withFake([{ status, body }], async (fake) => {
      const error = await errorOf(create(fake));
      equal([error.name, error.status, error.detail], ["GatewayError", status, message]);
      equal(error.requestId, undefined);
    });
  }
});
