// Sends a batch, and those of its entries again that the bank had no capacity for.

import { BankError, GatewayError, seconds } from "./errors.js";
import type { AccountBatchEntry, BatchEntry, EntryCreated, EntryProblem } from "./generated/types.gen.js";
import { type Retries, Tries } from "./retries.js";

export type Result = EntryCreated | EntryProblem;

type Entry = BatchEntry | AccountBatchEntry;

const THROTTLED = 503;
// The mark for the rest of a name that is too long.
const CUT = "\u2026";

/**
 * Returns a result for each entry, in their order.
 *
 * An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
 * or if the request that repeats it fails: the results of the other entries must not be lost.
 */
export async function sendBatch<E extends Entry>(
  send: (entries: E[]) => Promise<Result[]>,
  entries: readonly E[],
  retries: Retries,
  account?: string,
): Promise<Result[]> {
  const results = [...checked(await send([...entries]), entries, account)];
  const tries = new Tries(retries);
  for (;;) {
    const places = [...results.keys()].filter((place) => results[place]?.statusCode === THROTTLED);
    if (places.length === 0 || !(await tries.pause(Math.max(...places.map((place) => demanded(results[place])))))) {
      return results;
    }
    try {
      const again = entries.filter((_, place) => places.includes(place));
      const repeated = checked(await send(again), again, account);
      repeated.forEach((result, index) => {
        const place = places[index] as number;
        results[place] = atPlace(result, place);
      });
    } catch (error) {
      if (error instanceof BankError) {
        return results;
      }
      throw error;
    }
  }
}

/** Returns the results if there is one for each entry, which names the same account and key as the entry. */
function checked(results: Result[], entries: readonly Entry[], account: string | undefined): Result[] {
  const isOf = (result: Result, place: number) => {
    const entry = entries[place] as Entry;
    const of = "accountId" in entry ? entry.accountId : account;
    return isSame(result.accountId, of) && isSame(result.idempotencyKey, entry.idempotencyKey);
  };
  if (results.length !== entries.length || !results.every(isOf)) {
    throw new GatewayError("The results are not those of the entries that were sent.", 200);
  }
  return results;
}

/** Says whether a result names what was sent. It names nothing that the bank cannot read, and cuts what is too long. */
function isSame(named: string | undefined, sent: string | undefined): boolean {
  if (named === undefined || sent === undefined || named === sent) {
    return true;
  }
  return named.endsWith(CUT) && sent.startsWith(named.slice(0, -CUT.length));
}

/** Returns how many seconds to wait before an entry is sent again; 0 if it does not say. */
function demanded(result: Result | undefined): number {
  return result && "problem" in result ? (seconds(result.problem.retryAfterSeconds) ?? 0) : 0;
}

/** Returns a result whose pointers begin with the entry's place in the caller's batch. */
function atPlace(result: Result, place: number): Result {
  if ("problem" in result) {
    for (const fault of result.problem.errors ?? []) {
      fault.pointer = fault.pointer.replace(/^\/payments\/[0-9]+/, `/payments/${place}`);
    }
  }
  return result;
}
