// Runs the checks of checks.txt, with the variables that .ci/try-clients.sh sets.

import "./batches.js";
import "./broken.js";
import "./endpoints.js";
import "./lists.js";
import "./numbers.js";
import "./payments.js";
import "./retries.js";
import "./tokens.js";
import { run } from "./suite.js";

process.exit((await run()) === 0 ? 0 : 1);
