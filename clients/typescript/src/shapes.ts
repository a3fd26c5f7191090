// The shape of answers, as far as this client and its callers rely on it. Further members are permitted.

/** Says whether a value of an answer is as it should be. */
export type Shape = (value: unknown) => boolean;

const text: Shape = (value) => typeof value === "string";
const flag: Shape = (value) => typeof value === "boolean";
const integer: Shape = (value) => typeof value === "bigint" || Number.isSafeInteger(value);
const sum: Shape = (value) => typeof value === "string" && /^-?[0-9]{1,38}$/.test(value);
const absent: Shape = (value) => value === undefined;
const textOrNull: Shape = (value) => value === null || text(value);

/** Says whether a value is an object, and not a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function optional(shape: Shape): Shape {
  return (value) => value === undefined || shape(value);
}

function list(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every(shape);
}

function record(shape: Shape): Shape {
  return (value) => isObject(value) && Object.values(value).every(shape);
}

function object(members: Record<string, Shape>): Shape {
  return (value) => isObject(value) && Object.entries(members).every(([name, shape]) => shape(value[name]));
}

function either(one: Shape, other: Shape): Shape {
  return (value) => one(value) || other(value);
}

function page(payments: Shape): Shape {
  const unreadable = optional(object({ count: integer, paymentIds: list(text) }));
  return object({ payments: list(payments), nextCursor: textOrNull, unreadable });
}

const money = { payeeAccountId: text, amountMinor: integer, currency: text };
const due = { dueAt: text, dueDate: text };
const named = { paymentId: text, accountId: text, status: text, version: integer };
const change = object({ status: text, at: text, by: object({ kind: text }) });
const content = { ...money, ...due, scheduledFor: text };

export const payment = object({ ...named, ...content, createdAt: text, updatedAt: text, trail: list(change) });
export const payments = page(payment);
export const duePayments = page(object({ ...named, ...money, ...due }));
export const versions = object({ versions: list(object({ ...content, version: integer, at: text })) });

export const problem = object({
  type: text,
  detail: text,
  title: optional(text),
  help: optional(text),
  field: optional(text),
  fields: optional(list(text)),
  errors: optional(list(object({ pointer: text, type: text, detail: text }))),
  excessBytes: optional(integer),
  currentVersion: optional(integer),
  oldestCursor: optional(text),
  requestId: optional(text),
});

const result = { statusCode: integer, accountId: optional(text), idempotencyKey: optional(text) };
const results = either(object({ ...result, payment, problem: absent }), object({ ...result, problem, payment: absent }));
export const batch = object({ results: list(results) });

const numbers = { total: integer, archived: integer, unparsed: integer };
const day = object({ ...numbers, date: text, byStatus: record(integer), sums: record(record(sum)) });
export const counts = object({ counts: list(day) });

const amount = { amountMinor: optional(integer) };
const event = { id: text, type: text, at: text, epoch: integer, v: integer, version: optional(integer), ...amount };
const events = list(object({ ...event, previous: optional(object(amount)) }));
export const eventPage = object({ events, nextCursor: text, hasMore: flag });
export const message = object({ events });

const delivery = object({ at: text, messageId: text, bodies: integer, events: integer, outcome: text });
const state = { status: text, cursor: text, segmentsBehind: integer, deliveries: list(delivery) };
const settings = { url: text, createdAt: text, updatedAt: text, secretGeneration: integer };
export const deletedEndpoint = object({ id: text });
export const endpoint = object({ id: text, ...settings, ...state });
export const endpoints = object({ endpoints: list(endpoint) });
export const secrets = object({ secrets: list(object({ generation: integer, secret: text, until: optional(text) })) });

const closed = optional(list(object({ date: text, name: text })));
export const calendar = object({ calendarId: text, calendarVersion: text, timeZone: text, from: text, to: text, closed });
export const calendars = object({ calendars: list(calendar) });
