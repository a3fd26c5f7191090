// The list of checks, and what runs them.

import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";

const checks = new Map<string, () => Promise<void>>();

/** Registers a check under its name in checks.txt. */
export function check(name: string, run: () => Promise<void>): void {
  assert(!checks.has(name), name);
  checks.set(name, run);
}

/** Fails if the two differ. */
export function equal(found: unknown, wanted: unknown): void {
  assert.deepEqual(found, wanted);
}

/** Ends any request to another machine with an error. */
function stayOnThisMachine(): void {
  const send = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const { hostname } = new URL(input instanceof Request ? input.url : input);
    assert.equal(hostname, "127.0.0.1", `a check connects to ${hostname}`);
    return send(input, init);
  };
}

/** Runs each check of the list, and writes `ok NAME: SENTENCE` for each that passes. Returns the number of failures. */
export async function run(): Promise<number> {
  stayOnThisMachine();
  const lines = readFileSync(variable("CHECKS"), "utf8").trimEnd().split("\n");
  const names = lines.map((line) => line.slice(0, line.indexOf(":")));
  const failed = [...checks.keys()].filter((name) => !names.includes(name)).map((name) => `not in the list: ${name}`);
  for (const [index, name] of names.entries()) {
    try {
      const function_ = checks.get(name);
      assert(function_, "no such check");
      await function_();
      console.log(`ok ${lines[index]}`);
    } catch (error) {
      console.log(error);
      failed.push(`not ok ${lines[index]}`);
    }
  }
  failed.forEach((line) => console.log(line));
  return failed.length;
}

/** Returns a variable of the environment. */
export function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}
