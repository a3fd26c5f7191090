// Verifies the requests that the bank sends to a webhook endpoint, by Standard Webhooks.

import { createHmac, timingSafeEqual } from "node:crypto";
import { valueOf } from "./calls.js";
import type { Event } from "./generated/types.gen.js";
import { message } from "./shapes.js";

// Seconds that a message may be older or newer than this machine's clock.
const TOLERANCE_SECONDS = 300;
// Standard Webhooks knows no shorter secret. The bank's have 32 bytes.
const MIN_SECRET_BYTES = 24;

export type WebhookErrorKind = "missing-header" | "wrong-signature" | "too-old" | "too-new" | "not-events";

/** The headers of a request, as `fetch`, a framework or Node has them. Their names may be in any case. */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Seconds that a message may be older or newer than this machine's clock; 300 by default. */
  toleranceSeconds?: number;
  /** The seconds since 1970. */
  clock?: () => number;
}

/** A request that must not be trusted. Answer it with 400. */
export class WebhookError extends Error {
  readonly kind: WebhookErrorKind;
  readonly detail: string;

  constructor(kind: WebhookErrorKind, detail: string) {
    super(`${kind}: ${detail}`);
    this.name = "WebhookError";
    this.kind = kind;
    this.detail = detail;
  }
}

/**
 * Returns the events of a request, or throws a WebhookError unless the bank sent this body within the tolerance. Give the body
 * as it was received, and all secrets that you know: one has to fit.
 */
export function verify(
  secrets: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): Event[] {
  const { toleranceSeconds = TOLERANCE_SECONDS, clock = () => Date.now() / 1000 } = options;
  const keys = [secrets].flat().map(keyBytes);
  if (keys.length === 0) {
    throw new RangeError("there is no secret to verify with");
  }
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new TypeError("the body must be the received text or bytes, not a value that was parsed from them");
  }
  const found = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  const values = new Map(found.map(([name, value]) => [name.toLowerCase(), String(value ?? "")]));
  const [id, sent, signatures] = [header(values, "id"), header(values, "timestamp"), header(values, "signature")];
  const bytes = Buffer.from(body);
  checkSignature(keys, [`${id}.${sent}.`, bytes], signatures);
  checkTime(sent, clock(), toleranceSeconds);
  const value = valueOf(bytes.toString());
  if (!message(value)) {
    throw new WebhookError("not-events", `not the message that openapi.yaml describes: ${bytes.toString().slice(0, 200)}`);
  }
  return (value as { events: Event[] }).events;
}

/** Returns the key of a secret. An error never shows the secret. */
function keyBytes(secret: string): Buffer {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.length < MIN_SECRET_BYTES || key.toString("base64") !== text) {
    throw new RangeError("a secret must be the text whsec_… that the bank shows for the endpoint");
  }
  return key;
}

function header(headers: Map<string, string>, name: string): string {
  const value = headers.get(`webhook-${name}`);
  if (!value) {
    const detail = `the header webhook-${name} is missing or empty; pass all headers of the request`;
    throw new WebhookError("missing-header", detail);
  }
  return value;
}

/** Throws unless one of the signatures is by one of the keys. Each comparison takes the same time. */
function checkSignature(keys: Buffer[], parts: (string | Buffer)[], signatures: string): void {
  const signed = (key: Buffer) => {
    const hmac = createHmac("sha256", key);
    parts.forEach((part) => hmac.update(part));
    return Buffer.from(`v1,${hmac.digest("base64")}`);
  };
  const given = signatures.split(" ").map((text) => Buffer.from(text));
  const fits = (wanted: Buffer) => given.some((one) => one.length === wanted.length && timingSafeEqual(one, wanted));
  if (!keys.map(signed).some(fits)) {
    const detail = "no signature fits; use this endpoint's secrets, and the body as it was received";
    throw new WebhookError("wrong-signature", detail);
  }
}

/** Throws unless a message is of now. */
function checkTime(sent: string, now: number, tolerance: number): void {
  if (!/^[0-9]+$/.test(sent)) {
    throw new WebhookError("wrong-signature", `the bank signs no message with the timestamp "${sent}"`);
  }
  const age = Math.floor(now) - Number(sent);
  if (Math.abs(age) <= tolerance) {
    return;
  }
  if (age < 0) {
    const detail = `it was signed ${-age} seconds ahead of this machine's clock, which may be behind`;
    throw new WebhookError("too-new", detail);
  }
  const detail = `it was signed ${age} seconds ago; somebody sent it again, or this machine's clock is ahead`;
  throw new WebhookError("too-old", detail);
}
