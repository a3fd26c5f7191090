// Access tokens: a text, a function that returns one, or the credentials of a client.

import { GatewayError, fromResponse, objectOf, seconds } from "./errors.js";

// A token is renewed so many seconds before it expires, or after half of its life if that is shorter.
const EARLY_SECONDS = 60;

/** The credentials of a machine's client, and the URL where its issuer gives tokens. */
export interface ClientCredentials {
  id: string;
  secret: string;
  tokenUrl: string;
  scope?: string;
  /** The seconds of a clock that is never set back. */
  clock?: () => number;
}

export type Token = string | (() => string | Promise<string>) | ClientCredentials;

/** The status, headers and body of an answer. Bytes that are not UTF-8 are replaced in its text. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  isUtf8: boolean;
}

/** Returns the token for a request, and renews that of a client's credentials before it expires. */
export class Source {
  readonly #token: Token | undefined;
  readonly #send: (request: Request) => Promise<Answer>;
  #current: Promise<string> | undefined;
  #renewAt = -Infinity;

  constructor(token: Token | undefined, send: (request: Request) => Promise<Answer>) {
    this.#token = token;
    this.#send = send;
  }

  /** Returns the token of this moment. Throws a BankError if the issuer refuses or does not answer. */
  async get(): Promise<string | undefined> {
    const token = this.#token;
    if (typeof token === "function") {
      return token();
    }
    if (typeof token !== "object") {
      return token;
    }
    const now = (token.clock ?? (() => performance.now() / 1000))();
    if (this.#current === undefined || now >= this.#renewAt) {
      // Requests of the same moment wait for the same token.
      this.#renewAt = Infinity;
      this.#current = this.#renew(token, now);
    }
    return this.#current;
  }

  async #renew(credentials: ClientCredentials, now: number): Promise<string> {
    try {
      const { text, lives } = await this.#ask(credentials);
      this.#renewAt = now + lives - Math.min(EARLY_SECONDS, lives / 2);
      return text;
    } catch (error) {
      this.#current = undefined;
      throw error;
    }
  }

  async #ask({ id, secret, tokenUrl, scope }: ClientCredentials): Promise<{ text: string; lives: number }> {
    const form = new URLSearchParams({ grant_type: "client_credentials", ...(scope ? { scope } : {}) });
    const basic = Buffer.from(`${id}:${secret}`).toString("base64");
    const request = new Request(tokenUrl, {
      method: "POST",
      body: form,
      headers: { Authorization: `Basic ${basic}` },
      redirect: "manual",
    });
    const { status, headers, text } = await this.#send(request);
    if (status < 200 || status > 299) {
      throw fromResponse(status, headers, text);
    }
    const body = objectOf(text);
    const token = body?.["access_token"];
    const lives = seconds(body?.["expires_in"] ?? 0);
    if (typeof token !== "string" || lives === undefined) {
      const detail = "The issuer's answer has no access_token, or no number of seconds as expires_in.";
      throw new GatewayError(detail, status, headers);
    }
    return { text: token, lives };
  }
}
