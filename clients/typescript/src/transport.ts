// Sends each request with a token, again if that helps, and turns every other answer into an exception.

import { BankError, GatewayError, NoAnswer, fromResponse } from "./errors.js";
import { type Retries, Tries } from "./retries.js";
import { type Answer, Source, type Token } from "./tokens.js";

/** Returns what the generated code sends its requests with. It returns a success, or throws a BankError. */
export function transport(token: Token | undefined, retries: Retries, timeoutSeconds: number): typeof fetch {
  const send = (request: Request) => exchange(request, timeoutSeconds);
  const source = new Source(token, send);

  const attempt = async (request: Request): Promise<Response> => {
    const text = await source.get();
    if (text !== undefined) {
      request.headers.set("Authorization", `Bearer ${text}`);
    }
    const answer = await send(request);
    if (answer.status < 200 || answer.status > 299) {
      throw fromResponse(answer.status, answer.headers, answer.text);
    }
    if (!answer.isUtf8) {
      throw new GatewayError("The answer is not UTF-8, as JSON is.", answer.status, answer.headers);
    }
    return new Response(answer.text, answer);
  };

  return async (input, init) => {
    const request = new Request(input, init);
    const tries = new Tries(retries);
    for (;;) {
      try {
        return await attempt(request.clone());
      } catch (error) {
        if (!(error instanceof BankError) || !(await tries.again(error))) {
          throw error;
        }
      }
    }
  };
}

/** Returns the whole answer of a request. Throws NoAnswer if there is none. */
async function exchange(request: Request, timeoutSeconds: number): Promise<Answer> {
  try {
    const response = await fetch(request, { signal: AbortSignal.timeout(timeoutSeconds * 1000) });
    const bytes = await response.arrayBuffer();
    return { status: response.status, headers: response.headers, text: decode(bytes, false), isUtf8: isUtf8(bytes) };
  } catch (error) {
    const { host } = new URL(request.url);
    // The cause names what `fetch failed` does not.
    const reason = (error instanceof Error && error.cause) || error;
    throw new NoAnswer(`No answer from ${host}: ${reason}`, undefined, undefined, { cause: error });
  }
}

function decode(bytes: ArrayBuffer, fatal: boolean): string {
  return new TextDecoder("utf-8", { fatal }).decode(bytes);
}

function isUtf8(bytes: ArrayBuffer): boolean {
  try {
    decode(bytes, true);
    return true;
  } catch {
    return false;
  }
}
