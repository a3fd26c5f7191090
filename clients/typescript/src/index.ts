// A client of the API for scheduled payments: typed, with safe retries and exact numbers.

export { Bank } from "./bank.js";
export type {
  AmendOptions,
  Amended,
  BankOptions,
  CallOptions,
  Created,
  DayCounts,
  DueOptions,
  FindOptions,
  ListOptions,
} from "./bank.js";
export type { Result } from "./batches.js";
export { BankError, GatewayError, NoAnswer, ProblemError } from "./errors.js";
export type { Fault } from "./errors.js";
export type {
  AccountBatchEntry,
  BatchEntry,
  Calendar,
  DuePayment,
  EntryCreated,
  EntryProblem,
  Payment,
  PaymentOrder,
  PaymentVersion,
  Status,
  TrailEntry,
} from "./generated/types.gen.js";
export { Pages } from "./pages.js";
export type { Retries } from "./retries.js";
export type { ClientCredentials, Token } from "./tokens.js";
