// JSON with exact integers: a number if it holds the integer exactly, else a bigint.

import { parse, stringify } from "lossless-json";

/** Returns the value of a text. Of a name that an object has twice, the last value counts, as with JSON.parse. */
export function fromJson(text: string): unknown {
  return parse(text, null, { parseNumber: exactNumber, onDuplicateKey: ({ newValue }) => newValue });
}

/** Returns the text of a value, with every digit of a bigint. */
export function toJson(value: unknown): string {
  return stringify(value) ?? "null";
}

function exactNumber(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) || !/^-?[0-9]+$/.test(text) ? number : BigInt(text);
}
