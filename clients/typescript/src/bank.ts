// The bank: each operation of the API as a method.

import { type Result, sendBatch } from "./batches.js";
import { type CallOptions, type Through, read, requestId, segment } from "./calls.js";
import { Endpoints } from "./endpoints.js";
import { type Client, createClient } from "./generated/client/index.js";
import * as api from "./generated/sdk.gen.js";
import type {
  AccountBatchEntry,
  BatchEntry,
  BatchResult,
  Calendar,
  CalendarList,
  CountsOfDates,
  DuePage,
  DuePayment,
  EventPage,
  DayCounts as GeneratedDayCounts,
  Payment,
  PaymentOrder,
  PaymentPage,
  PaymentVersion,
  PaymentVersions,
  Status,
} from "./generated/types.gen.js";
import { toJson } from "./json.js";
import { Pages, checkMoves } from "./pages.js";
import { type Retries, retriesWith } from "./retries.js";
import * as shapes from "./shapes.js";
import type { Token } from "./tokens.js";
import { transport } from "./transport.js";

// API Gateway waits 30 seconds for an answer. After these, the connection is taken for lost.
const TIMEOUT_SECONDS = 35;

/** A payment. `replayed` says that an earlier request created it. */
export interface Created {
  payment: Payment;
  replayed: boolean;
}

/** A payment as it is now. `replayed` says that an earlier request amended it. */
export interface Amended {
  payment: Payment;
  replayed: boolean;
}

/** The numbers of payments of a date, and the exact sums of their amounts by currency, in minor units. */
export type DayCounts = Omit<GeneratedDayCounts, "sums"> & { sums: Record<string, Record<Status, bigint>> };

export interface BankOptions {
  retries?: Partial<Retries>;
  timeoutSeconds?: number;
}

export interface AmendOptions extends CallOptions {
  /** The version of the payment as you read it. */
  version: number;
}

export interface FindOptions extends CallOptions {
  withData?: boolean;
}

export interface ListOptions extends FindOptions {
  from?: string;
  to?: string;
  status?: Status[];
  payee?: string;
  reference?: string;
  order?: "asc" | "desc";
  pageSize?: number;
}

export interface DueOptions extends CallOptions {
  status?: Status[];
  shard?: number;
  pageSize?: number;
}

/** A bank's API. */
export class Bank {
  /** For requests that this class has no method for. Its answers are texts; `data` is one, too. */
  readonly generated: Client;
  readonly webhookEndpoints: Endpoints;
  readonly #retries: Retries;

  constructor(baseUrl: string, token?: Token, options: BankOptions = {}) {
    this.#retries = retriesWith(options.retries);
    this.generated = createClient({
      baseUrl: baseUrl.replace(/\/+$/, ""),
      fetch: transport(token, this.#retries, options.timeoutSeconds ?? TIMEOUT_SECONDS),
      // A redirection is an error: see `fromResponse`.
      redirect: "manual",
      parseAs: "text",
      bodySerializer: toJson,
      throwOnError: true,
    });
    this.webhookEndpoints = new Endpoints(this.#client);
  }

  /** Creates a payment. Use a new key for each payment; the same key and order return the same payment. */
  async create(account: string, key: string, order: PaymentOrder, options: CallOptions = {}): Promise<Created> {
    const headers = { ...requestId(options), "Idempotency-Key": keyHeader(key) };
    const path = { accountId: segment(account) };
    const answer = await api.createPayment({ ...this.#client, path, headers, body: order });
    return { payment: read<Payment>(answer, shapes.payment), replayed: isReplayed(answer) };
  }

  /** Creates up to 100 payments of any accounts. Each entry has its own result, in the same place. */
  async createBatch(entries: readonly BatchEntry[], options: CallOptions = {}): Promise<Result[]> {
    const headers = requestId(options);
    const send = async (payments: BatchEntry[]) => {
      const answer = await api.createPaymentBatch({ ...this.#client, headers, body: { payments } });
      return read<BatchResult>(answer, shapes.batch).results;
    };
    return sendBatch(send, entries, this.#retries);
  }

  /** Creates up to 100 payments of one account. Each entry has its own result, in the same place. */
  async createAccountBatch(
    account: string,
    entries: readonly AccountBatchEntry[],
    options: CallOptions = {},
  ): Promise<Result[]> {
    const path = { accountId: segment(account) };
    const headers = requestId(options);
    const send = async (payments: AccountBatchEntry[]) => {
      const answer = await api.createAccountPaymentBatch({ ...this.#client, path, headers, body: { payments } });
      return read<BatchResult>(answer, shapes.batch).results;
    };
    return sendBatch(send, entries, this.#retries, account);
  }

  /** Returns a payment with its data. */
  async get(account: string, paymentId: string, options: CallOptions = {}): Promise<Payment> {
    const path = { accountId: segment(account), paymentId: segment(paymentId) };
    return read(await api.getPayment({ ...this.#client, path, headers: requestId(options) }), shapes.payment);
  }

  /**
   * Makes a scheduled payment what the order says, if it has the version in the options. Use a new key for each amendment; the
   * same key and order return the payment, whatever version it has by now.
   */
  async amend(
    account: string,
    paymentId: string,
    key: string,
    order: PaymentOrder,
    options: AmendOptions,
  ): Promise<Amended> {
    const headers = { ...requestId(options), "Idempotency-Key": keyHeader(key), "If-Match": `"${options.version}"` };
    const path = { accountId: segment(account), paymentId: segment(paymentId) };
    const answer = await api.amendPayment({ ...this.#client, path, headers, body: order });
    return { payment: read<Payment>(answer, shapes.payment), replayed: isReplayed(answer) };
  }

  /** Returns what a payment said when it was created, and after each amendment. */
  async versions(account: string, paymentId: string, options: FindOptions = {}): Promise<PaymentVersion[]> {
    const path = { accountId: segment(account), paymentId: segment(paymentId) };
    const query = included(options.withData);
    const answer = await api.listPaymentVersions({ ...this.#client, path, query, headers: requestId(options) });
    return read<PaymentVersions>(answer, shapes.versions).versions;
  }

  /** Cancels a scheduled payment. Repeating it is safe. */
  async cancel(account: string, paymentId: string, options: CallOptions = {}): Promise<Payment> {
    const path = { accountId: segment(account), paymentId: segment(paymentId) };
    return read(await api.cancelPayment({ ...this.#client, path, headers: requestId(options) }), shapes.payment);
  }

  /** Lists an account's payments by due time: by default all that are coming. */
  list(account: string, options: ListOptions = {}): Pages<Payment> {
    const path = { accountId: segment(account) };
    const headers = requestId(options);
    const { from, to, status, payee, reference, order, pageSize, withData } = options;
    const filters = { from, to, reference, order, limit: pageSize, payeeAccountId: payee, ...included(withData) };
    return new Pages(async (cursor) => {
      const query = { ...filters, ...statuses(status), cursor };
      return read<PaymentPage>(await api.listAccountPayments({ ...this.#client, path, headers, query }), shapes.payments);
    });
  }

  /** Returns the payment that was created with this key, or undefined. */
  async findByKey(account: string, key: string, options: FindOptions = {}): Promise<Payment | undefined> {
    const path = { accountId: segment(account) };
    const query = { idempotencyKey: key, ...included(options.withData) };
    const answer = await api.listAccountPayments({ ...this.#client, path, query, headers: requestId(options) });
    return read<PaymentPage>(answer, shapes.payments).payments[0];
  }

  /** Lists the payments of a date, of all accounts. */
  due(date: string, options: DueOptions = {}): Pages<DuePayment> {
    const headers = requestId(options);
    const { status, shard, pageSize } = options;
    return new Pages(async (cursor) => {
      const query = { dueDate: date, ...statuses(status), shard, limit: pageSize, cursor };
      return read<DuePage>(await api.listDuePayments({ ...this.#client, headers, query }), shapes.duePayments);
    });
  }

  /** Returns the payment with this transaction id; several, if the transaction service used it several times. */
  async findByTransaction(transactionId: string, options: CallOptions = {}): Promise<Payment[]> {
    const query = { transactionId };
    const answer = await api.listDuePayments({ ...this.#client, query, headers: requestId(options) });
    // The description allows two kinds of pages here. This one has whole payments.
    return read<PaymentPage>(answer, shapes.payments).payments;
  }

  /** Returns the numbers and sums of each date of a range. */
  async counts(from?: string, to?: string, options: CallOptions = {}): Promise<DayCounts[]> {
    const answer = await api.getCounts({ ...this.#client, query: { from, to }, headers: requestId(options) });
    return read<CountsOfDates>(answer, shapes.counts).counts.map(dayCounts);
  }

  /**
   * Returns what happened after a cursor: from the oldest event on, without one, or from now on, if it is `now`. Call it again
   * with the page's `nextCursor`.
   */
  async events(cursor?: string, options: CallOptions & { limit?: number } = {}): Promise<EventPage> {
    const { limit } = options;
    const query = { cursor, limit };
    const answer = await api.listEvents({ ...this.#client, query, headers: requestId(options) });
    const page = read<EventPage>(answer, shapes.eventPage);
    if (page.hasMore) {
      checkMoves(cursor, page.nextCursor);
    }
    return page;
  }

  /** Returns the calendars that the bank uses, without their closed dates. */
  async calendars(options: CallOptions = {}): Promise<Calendar[]> {
    const answer = await api.listCalendars({ ...this.#client, headers: requestId(options) });
    return read<CalendarList>(answer, shapes.calendars).calendars;
  }

  /** Returns a calendar with its closed dates. */
  async calendar(calendarId: string, options: CallOptions = {}): Promise<Calendar> {
    const path = { calendarId: segment(calendarId) };
    return read(await api.getCalendar({ ...this.#client, path, headers: requestId(options) }), shapes.calendar);
  }

  get #client(): Through {
    return { client: this.generated, throwOnError: true };
  }
}

/** Returns the counts of a date with its sums as integers. */
function dayCounts(day: GeneratedDayCounts): DayCounts {
  const integers = (texts: Record<string, string>) =>
    Object.fromEntries(Object.entries(texts).map(([status, text]) => [status, BigInt(text)])) as Record<Status, bigint>;
  const sums = Object.entries(day.sums).map(([currency, texts]) => [currency, integers(texts ?? {})] as const);
  return { ...day, sums: Object.fromEntries(sums) };
}

/** Returns whether an earlier request did what this one asks for. */
function isReplayed({ response }: { response: Response }): boolean {
  return response.headers.get("Idempotent-Replayed") === "true";
}

/** An empty list means all statuses, as none does. */
function statuses(status: Status[] | undefined): { status?: Status[] } {
  return status && status.length > 0 ? { status } : {};
}

function included(withData: boolean | undefined): { include?: "data" } {
  return withData ? { include: "data" } : {};
}

/** Returns the header that sends a key. One that begins with a double quote is sent in quotes. */
function keyHeader(key: string): string {
  return key.startsWith('"') ? JSON.stringify(key) : key;
}
