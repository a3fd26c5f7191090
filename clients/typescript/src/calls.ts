// What every method of the client does with its arguments and with its answer.

import { GatewayError } from "./errors.js";
import type { Client } from "./generated/client/index.js";
import { fromJson } from "./json.js";
import type { Shape } from "./shapes.js";

export interface CallOptions {
  /** The id of this request: see `X-Request-Id` in openapi.yaml. */
  requestId?: string;
}

/** How the generated code is called: a failure is an exception. */
export interface Through {
  client: Client;
  throwOnError: true;
}

/** Returns what a success contains. The generated code has only its text, because it would round large integers. */
export function read<T>({ data, response }: { data: unknown; response: Response }, shape: Shape): T {
  const value = valueOf(String(data));
  if (!shape(value)) {
    const start = String(data).slice(0, 200);
    throw new GatewayError(`Not the answer that openapi.yaml describes: ${start}`, response.status, response.headers);
  }
  return value as T;
}

/** Returns the value of a text, or undefined if it is not JSON. */
export function valueOf(text: string): unknown {
  try {
    return fromJson(text);
  } catch {
    return undefined;
  }
}

export function requestId({ requestId }: CallOptions): { "X-Request-Id"?: string } {
  return requestId === undefined ? {} : { "X-Request-Id": requestId };
}

/** Returns an id that can be a segment of a path. Programs between would remove dots, and so change the request. */
export function segment(id: string): string {
  if (["", ".", ".."].includes(id)) {
    throw new RangeError(`an id must not be "${id}"`);
  }
  return id;
}
