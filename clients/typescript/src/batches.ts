// Sends a batch, and those of its entries again that the bank had no capacity for.

import { BankError } from "./errors.js";
import type { EntryCreated, EntryProblem } from "./generated/types.gen.js";
import { type Retries, Tries } from "./retries.js";

export type Result = EntryCreated | EntryProblem;

const THROTTLED = 503;

/**
 * Returns a result for each entry, in their order.
 *
 * An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
 * or if the request that repeats it fails: the results of the other entries must not be lost.
 */
export async function sendBatch<Entry>(
  send: (entries: Entry[]) => Promise<Result[]>,
  entries: readonly Entry[],
  retries: Retries,
): Promise<Result[]> {
  const results = [...(await send([...entries]))];
  const tries = new Tries(retries);
  for (;;) {
    const places = [...results.keys()].filter((place) => results[place]?.statusCode === THROTTLED);
    if (places.length === 0 || !(await tries.pause(Math.max(...places.map((place) => demanded(results[place])))))) {
      return results;
    }
    try {
      const repeated = await send(entries.filter((_, place) => places.includes(place)));
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

/** Returns how many seconds to wait before an entry is sent again; 0 if it does not say. */
function demanded(result: Result | undefined): number {
  return result && "problem" in result ? (result.problem.retryAfterSeconds ?? 0) : 0;
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
