// Verifies the cases of .ci/try-webhooks.sh with the block of docs/events.md and with the library.

import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
import { verify } from "./document.mjs";

const accepts = (check) => {
  try {
    check();
    return true;
  } catch {
    return false;
  }
};

for (const line of readFileSync(`${process.argv[2]}/cases.jsonl`, "utf8").trim().split("\n")) {
  const { name, accepted, secret, headers, body } = JSON.parse(line);
  const checks = {
    document: () => verify(secret, headers, Buffer.from(body)),
    library: () => new Webhook(secret).verify(body, headers),
  };
  for (const [who, check] of Object.entries(checks)) {
    if (accepts(check) !== accepted) throw new Error(`${who}: ${name}: accepted is ${!accepted}`);
    console.log(`ok ${who}: ${name}`);
  }
}
