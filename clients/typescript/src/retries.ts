// Retries of requests, and the waits before them.

import { BankError, NoAnswer } from "./errors.js";

// The statuses that a later attempt may not have. An internal error is different: it is tried once more only.
const PASSING = [429, 503, 504];
const INTERNAL = 500;
// Each pause is up to a quarter longer than it has to be, so that clients do not come back at the same moment.
const JITTER = 0.25;

/** The most tries of a request, and their longest time. Pauses double, and are at least what the answer demands. */
export interface Retries {
  /** 6 by default. */
  attempts: number;
  /** No attempt begins later than this after the first; 60 by default. */
  totalSeconds: number;
  /** The first pause, if the answer demands none; 0.5 by default. */
  firstSeconds: number;
  wait: (seconds: number) => Promise<void>;
  /** The seconds of a clock that is never set back. */
  clock: () => number;
  random: () => number;
}

/** Returns the defaults with changes. */
export function retriesWith(changes: Partial<Retries> = {}): Retries {
  return {
    attempts: 6,
    totalSeconds: 60,
    firstSeconds: 0.5,
    wait: (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000)),
    clock: () => performance.now() / 1000,
    random: Math.random,
    ...changes,
  };
}

/** The attempts of one request. */
export class Tries {
  readonly #retries: Retries;
  readonly #end: number;
  #failed = 0;
  #internal = 0;

  constructor(retries: Retries) {
    this.#retries = retries;
    this.#end = retries.clock() + retries.totalSeconds;
  }

  /** Waits, if the request that had this error is to be sent again. Returns whether it is. */
  async again(error: BankError): Promise<boolean> {
    const isInternal = error.status === INTERNAL;
    this.#internal += isInternal ? 1 : 0;
    const isPassing = error instanceof NoAnswer || PASSING.includes(error.status ?? 0);
    return (isPassing || (isInternal && this.#internal === 1)) && (await this.pause(error.retryAfter));
  }

  /** Waits before the next attempt. Returns false, at once, if none is left. */
  async pause(demanded: number | undefined): Promise<boolean> {
    this.#failed += 1;
    const doubled = (demanded || this.#retries.firstSeconds) * 2 ** (this.#failed - 1);
    const pause = doubled * (1 + JITTER * this.#retries.random());
    if (this.#failed >= this.#retries.attempts || this.#retries.clock() + pause > this.#end) {
      return false;
    }
    await this.#retries.wait(pause);
    return true;
  }
}
