// A server that gives the answers of a list, and keeps the requests: for what no healthy bank answers.

import { strict as assert } from "node:assert";
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Bank, type Retries, type Token } from "scheduled-payments";
import { toJson } from "../src/json.js";

const PROBLEMS = "urn:scheduled-payments:problem:";
export const PAYMENT = {
  paymentId: "61ecab5a-6d56-55ab-977e-6dab3db8c000",
  accountId: "acc-1",
  payeeAccountId: "acc-2",
  amountMinor: 12050,
  currency: "GBP",
  scheduledFor: "2090-06-15",
  dueAt: "2090-06-14T23:00:00Z",
  dueDate: "2090-06-15",
  status: "SCHEDULED",
  version: 1,
  createdAt: "2090-05-20T09:00:00Z",
  updatedAt: "2090-05-20T09:00:00Z",
  trail: [{ status: "SCHEDULED", at: "2090-05-20T09:00:00Z", by: { kind: "client", name: "app" } }],
};

/** An answer. `cut` closes the connection before it, or within its body, or says that it is never given, or byte by byte. */
export interface Answer {
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  cut?: "before" | "within" | "never" | "slow";
}

/** The wait of a slow answer before each byte of its body. */
const BYTE_MILLISECONDS = 5;

const POLLS = 1000;
const POLL_MILLISECONDS = 20;

/** A request that arrived. */
export interface Seen {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export const CREATED: Answer = { status: 201, body: PAYMENT };
export const GATEWAY_SLOW: Answer = { status: 504, body: { message: "Endpoint request timed out" } };

/** Returns the body of a problem. */
export function problem(status: number, kind: string, more: object = {}): object {
  return { type: PROBLEMS + kind, title: kind, status, help: `/problems/${kind}`, detail: "It is so.", ...more };
}

/** Returns the answer of a bank that has too much work. */
export function throttled(seconds: number): Answer {
  const headers = { "Retry-After": String(seconds), "Content-Type": "application/problem+json" };
  return { status: 503, body: problem(503, "throttled", { retryAfterSeconds: seconds }), headers };
}

/** Waits until something is so, which the running bank does by itself: a test at once, and events within some seconds. */
export async function poll(condition: () => boolean): Promise<void> {
  for (let polls = 0; !condition(); polls += 1) {
    assert(polls < POLLS, `not within ${POLLS * POLL_MILLISECONDS} ms`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
  }
}

/** The server, and a bank's client for it that keeps its pauses instead of waiting. */
export interface Fake {
  url: string;
  bank: Bank;
  seen: Seen[];
  pauses: number[];
}

/** Starts a server with these answers, and stops it after the check. */
export async function withFake(
  answers: Answer[],
  run: (fake: Fake) => Promise<void>,
  retries: Partial<Retries> = {},
  token: Token = "t",
  timeoutSeconds = 35,
): Promise<void> {
  const left = [...answers];
  const seen: Seen[] = [];
  const pauses: number[] = [];
  let now = 0;
  const wait = async (seconds: number) => {
    pauses.push(seconds);
    now += seconds;
  };
  const server = createServer(async (request, response) => {
    seen.push({ path: request.url ?? "", headers: request.headers, body: await text(request) });
    answer(request, response, left.shift() ?? { status: 418, body: { message: "no answer is left" } });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const plan = { wait, clock: () => now, random: () => 0, ...retries };
  const bank = new Bank(url, token, { retries: plan, timeoutSeconds });
  try {
    await run({ url, bank, seen, pauses });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function answer(request: IncomingMessage, response: ServerResponse, { status, body, headers, cut }: Answer): void {
  if (cut === "never") {
    return;
  }
  if (cut === "before") {
    request.socket.destroy();
    return;
  }
  const isContent = typeof body === "string" || body instanceof Uint8Array;
  const content = Buffer.from(isContent ? body : toJson(body));
  const usual = { "Content-Type": "application/json", "Content-Length": content.length };
  response.writeHead(status ?? 200, { ...usual, ...headers });
  if (cut === "slow") {
    const sending = setInterval(() => response.write(" "), BYTE_MILLISECONDS);
    response.on("close", () => clearInterval(sending));
  } else if (cut === "within") {
    response.write(content.subarray(0, content.length / 2), () => request.socket.destroy());
  } else {
    response.end(content);
  }
}
