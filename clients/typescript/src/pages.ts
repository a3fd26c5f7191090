// A list of all pages.

/** A page of payments, as the bank sends it. */
export interface Page<T> {
  payments: T[];
  nextCursor: string | null;
  leftOut?: { count: number; paymentIds: string[] };
}

/**
 * The payments of a list, read page by page while you iterate.
 *
 * `leftOut` counts those that the bank cannot read, and `leftOutIds` has the ids that it knows: report them.
 */
export class Pages<T> implements AsyncIterable<T> {
  leftOut = 0;
  leftOutIds: string[] = [];
  readonly #read: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(read: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#read = read;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    this.leftOut = 0;
    this.leftOutIds = [];
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const page: Page<T> = await this.#read(cursor);
      this.leftOut += page.leftOut?.count ?? 0;
      this.leftOutIds.push(...(page.leftOut?.paymentIds ?? []));
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
