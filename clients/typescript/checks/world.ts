// The running bank, and what the checks create there.

import { strict as assert } from "node:assert";
import { Bank, BankError, type Payment, type PaymentOrder, ProblemError } from "scheduled-payments";
import { variable } from "./suite.js";

export const URL_OF_BANK = variable("BANK_URL");
export const TOKEN_URL = `${URL_OF_BANK}/oauth2/token`;
export const TOKEN = variable("BANK_TOKEN");
export const TODAY = variable("BANK_TODAY");
// A settled payment of acc-1, the only one of today: 350 pence.
export const SETTLED_KEY = variable("BANK_SETTLED_KEY");
export const TRANSACTION = variable("BANK_TRANSACTION");
// No check needs a pause at the running bank.
export const BANK = new Bank(URL_OF_BANK, TOKEN, { retries: { attempts: 1 } });
export const NOTHING = "00000000-0000-0000-0000-000000000001";

/** Returns a date so many days from today. */
export function day(number: number): string {
  const date = new Date(`${TODAY}T12:00:00Z`);
  date.setUTCDate(date.getUTCDate() + number);
  return date.toISOString().slice(0, 10);
}

/** Returns an order of 120.50 pounds in a week, with changes. */
export function order(changes: Partial<PaymentOrder> = {}): PaymentOrder {
  return { payeeAccountId: "acc-2", amountMinor: 12050, currency: "GBP", scheduledFor: day(7), ...changes };
}

/** Returns a payment as the answers have it that include no data. */
export function withoutData({ data: _, ...payment }: Payment): Payment {
  return payment;
}

/** Returns the text of a payment, as the bank sends it. */
export async function rawPayment(account: string, paymentId: string): Promise<string> {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const response = await fetch(`${URL_OF_BANK}/accounts/${account}/payments/${paymentId}`, { headers });
  assert.equal(response.status, 200);
  return response.text();
}

/** Returns the error of a call. */
export async function errorOf(call: Promise<unknown>): Promise<BankError> {
  try {
    await call;
  } catch (error) {
    assert(error instanceof BankError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "no error" });
}

/** Returns the problem of a call. */
export async function problemOf(call: Promise<unknown>): Promise<ProblemError> {
  const error = await errorOf(call);
  assert(error instanceof ProblemError, String(error));
  return error;
}
