// A client of the API for scheduled payments: typed, with safe retries and exact numbers.

export { Bank } from "./bank.js";
export type {
  AmendOptions,
  Amended,
  BankOptions,
  Created,
  DayCounts,
  DueOptions,
  FindOptions,
  ListOptions,
} from "./bank.js";
export type { Result } from "./batches.js";
export type { CallOptions } from "./calls.js";
export type { EndpointSecret, PutEndpoint } from "./endpoints.js";
export { BankError, GatewayError, NoAnswer, ProblemError } from "./errors.js";
export type { Fault } from "./errors.js";
export type {
  AccountBatchEntry,
  Actor,
  BatchEntry,
  Calendar,
  DuePayment,
  EntryCreated,
  EntryProblem,
  Event,
  EventPage,
  Payment,
  PaymentOrder,
  PaymentVersion,
  PreviousFields,
  Status,
  TrailEntry,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointOrder,
} from "./generated/types.gen.js";
export { Pages } from "./pages.js";
export type { Retries } from "./retries.js";
export type { ClientCredentials, Token } from "./tokens.js";
export { WebhookError, verify } from "./webhooks.js";
export type { VerifyOptions, WebhookErrorKind, WebhookHeaders } from "./webhooks.js";
