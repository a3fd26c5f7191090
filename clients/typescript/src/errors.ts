// The exceptions of the client.

import { fromJson } from "./json.js";
import { isObject, problem as problemShape } from "./shapes.js";

/** One of the faults of a body: its place as a JSON Pointer, its type and its detail. */
export interface Fault {
  pointer: string;
  type: string;
  detail: string;
}

/** A request that did not succeed. `status` is undefined if there was no answer. */
export class BankError extends Error {
  readonly detail: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(detail: string, status?: number, headers?: Headers, options?: ErrorOptions) {
    super(detail, options);
    this.name = new.target.name;
    this.detail = detail;
    this.status = status;
    this.requestId = headers?.get("X-Request-Id") ?? undefined;
    this.retryAfter = seconds(headers?.get("Retry-After"));
  }
}

/** No answer: the connection was refused or lost, or too slow. The request may have taken effect. */
export class NoAnswer extends BankError {}

/**
 * An error without a problem: of API Gateway, of something between, or of the issuer of tokens. With the status of a success, the
 * request took effect, and its answer is not as openapi.yaml describes it.
 */
export class GatewayError extends BankError {}

interface Problem {
  type: string;
  detail: string;
  title?: string;
  help?: string;
  field?: string;
  fields?: string[];
  errors?: Fault[];
  excessBytes?: number;
  currentVersion?: number;
  oldestCursor?: string;
  retryAfterSeconds?: unknown;
  requestId?: string;
}

/** A problem of the API. `kind` is the end of its type, such as `no-such-payment`; docs/problems.md has all. */
export class ProblemError extends BankError {
  readonly type: string;
  readonly kind: string;
  readonly title: string | undefined;
  readonly help: string | undefined;
  readonly field: string | undefined;
  readonly fields: string[];
  readonly errors: Fault[];
  readonly excessBytes: number | undefined;
  readonly currentVersion: number | undefined;
  readonly oldestCursor: string | undefined;
  override readonly requestId: string | undefined;
  override readonly retryAfter: number | undefined;

  constructor(problem: Problem, status: number, headers: Headers) {
    super(problem.detail, status, headers);
    this.type = problem.type;
    this.kind = problem.type.slice(problem.type.lastIndexOf(":") + 1);
    this.message = `${status} ${this.kind}: ${problem.detail}`;
    this.title = problem.title;
    this.help = problem.help;
    this.field = problem.field;
    this.fields = problem.fields ?? [];
    this.errors = problem.errors ?? [];
    this.excessBytes = problem.excessBytes;
    this.currentVersion = problem.currentVersion;
    this.oldestCursor = problem.oldestCursor;
    this.requestId = problem.requestId ?? headers.get("X-Request-Id") ?? undefined;
    this.retryAfter = seconds(headers.get("Retry-After")) ?? seconds(problem.retryAfterSeconds);
  }
}

/** Returns the error that a response other than a success is. */
export function fromResponse(status: number, headers: Headers, text: string): BankError {
  const body = objectOf(text);
  if (body === undefined) {
    return new GatewayError(text || `status ${status}`, status, headers);
  }
  if (isProblem(body)) {
    return new ProblemError(body, status, headers);
  }
  return new GatewayError(typeof body["message"] === "string" ? body["message"] : text, status, headers);
}

function isProblem(body: unknown): body is Problem {
  return problemShape(body);
}

/** Returns the object of a text, or undefined if it is not the JSON of one. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const body = fromJson(text);
    return isObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a number of seconds, also one that is written as a text of digits, or undefined for anything else. */
export function seconds(value: unknown): number | undefined {
  const isNumber = typeof value === "number" || typeof value === "bigint";
  const isSeconds = isNumber ? value >= 0 : typeof value === "string" && /^[0-9]+$/.test(value);
  return isSeconds ? Number(value) : undefined;
}
