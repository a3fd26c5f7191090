// A list of all pages.

import { GatewayError } from "./errors.js";

/** A page of payments, as the bank sends it. */
export interface Page<T> {
  payments: T[];
  nextCursor: string | null;
  unreadable?: { count: number; paymentIds: string[] };
}

/**
 * The payments of a list, read page by page while you iterate.
 *
 * `unreadable` counts those that the bank cannot read, and `unreadableIds` has the ids that it knows: report them.
 */
export class Pages<T> implements AsyncIterable<T> {
  unreadable = 0;
  unreadableIds: string[] = [];
  readonly #read: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(read: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#read = read;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    this.unreadable = 0;
    this.unreadableIds = [];
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const page: Page<T> = await this.#read(cursor);
      checkMoves(cursor, page.nextCursor);
      this.unreadable += page.unreadable?.count ?? 0;
      this.unreadableIds.push(...(page.unreadable?.paymentIds ?? []));
      yield* page.payments;
      cursor = page.nextCursor;
    }
  }

  /** Returns all payments of the list. */
  async toArray(): Promise<T[]> {
    const all: T[] = [];
    for await (const payment of this) {
      all.push(payment);
    }
    return all;
  }
}

/** Throws a GatewayError if a page says that it follows itself: whoever reads on would do so for ever. */
export function checkMoves(cursor: string | undefined, following: string | null): void {
  if (following !== null && following === cursor) {
    throw new GatewayError(`The page at the cursor "${cursor}" has the same cursor as its next one.`, 200);
  }
}
