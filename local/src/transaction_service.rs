//! The bank's transaction service, simulated: it takes payments from the request queue and reports
//! what became of them, late, out of order, now and then twice, and some as failed.
//!
//! It deduplicates as the real one does: a payment id has one outcome and one transaction id,
//! however often it is asked for. All of this follows from the seed and the payment id, so that
//! the order in which requests arrive changes nothing.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_model::{FailureReason, PaymentId, Settlement, TransactionId};
use payments_queue::Queue;
use payments_queue::in_process::MAX_RECEIVED;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

/// How the service behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionServiceSettings {
    /// What everything it does at random follows from.
    pub seed: u64,
    /// The shortest time from a request to its result.
    pub shortest_delay: TimeDelta,
    /// The longest time from a request to its result.
    pub longest_delay: TimeDelta,
    /// How many payments of a thousand fail.
    pub failures_per_thousand: u16,
    /// How many results of a thousand are sent once more.
    pub repeats_per_thousand: u16,
}

impl TransactionServiceSettings {
    /// A service that takes a second to a minute and a half, refuses 2 payments in a hundred and
    /// repeats 3 results in a hundred.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            shortest_delay: TimeDelta::seconds(1),
            longest_delay: TimeDelta::seconds(90),
            failures_per_thousand: 20,
            repeats_per_thousand: 30,
        }
    }

    /// How a payment ends. The same payment ends the same way each time.
    #[must_use]
    pub fn outcome_of(&self, payment: PaymentId) -> Settlement {
        let mut random = self.random(payment, 0);
        if random.u16(0..1_000) < self.failures_per_thousand {
            let reason = random.choice(REASONS).copied().unwrap_or_default();
            return Settlement::Failed(FailureReason::cut(reason));
        }
        let (high, _) = drawn(self.seed, payment, "transaction").as_u64_pair();
        match format!("TX-{high:016X}").parse::<TransactionId>() {
            Ok(id) => Settlement::Processed(id),
            Err(error) => Settlement::Failed(FailureReason::cut(&error.to_string())),
        }
    }

    /// The chance that decides about the n-th request for a payment; 0 is the payment's own.
    fn random(&self, payment: PaymentId, nth: u64) -> Rng {
        Rng::with_seed(drawn(self.seed, payment, &nth.to_string()).as_u64_pair().0)
    }

    fn delay(&self, random: &mut Rng) -> TimeDelta {
        let (from, to) = (self.shortest_delay.num_milliseconds(), self.longest_delay.num_milliseconds());
        TimeDelta::milliseconds(random.i64(from..=to.max(from)))
    }
}

/// Why payments fail.
const REASONS: &[&str] =
    &["insufficient funds", "the payee's account is closed", "the limit of the day is reached", "the payee is unknown"];

/// The namespace of everything drawn from a seed and a payment id.
const NAMESPACE: Uuid = Uuid::from_u128(0x7a3f_8f0e_52c4_4a51_8d0b_1be6_90c2_f417);

fn drawn(seed: u64, payment: PaymentId, what: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{seed}/{payment}/{what}").as_bytes())
}

/// What the service has seen and said so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saw {
    /// Requests that it took.
    pub requests: u64,
    /// Different payment ids among them.
    pub payments: u64,
    /// Requests with another content than the first of their payment, `dispatchAttempt` apart.
    /// There should be none.
    pub other_contents: u64,
    /// Messages that are no requests; they come again and at last go to the dead letters.
    pub unreadable: u64,
    /// Results that it sent.
    pub results: u64,
    /// Results that were not the first of their payment.
    pub repeated_results: u64,
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Requests taken.
    pub taken: u64,
    /// Results sent.
    pub answered: u64,
}

/// The service at work.
#[derive(Debug)]
pub struct TransactionService {
    settings: TransactionServiceSettings,
    requests: Queue,
    results: Queue,
    known: HashMap<PaymentId, Known>,
    /// Results to be sent, by time and then by the order in which they were decided.
    outgoing: BTreeMap<(DateTime<Utc>, u64), (PaymentId, String)>,
    decided: u64,
    saw: Saw,
}

/// What the service remembers of a payment.
#[derive(Debug)]
struct Known {
    /// A digest of its content: a million contents would be gigabytes.
    content: Uuid,
    requests: u64,
    results: u64,
}

/// A result as it is written. The echo is written as it was received.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultJson<'r> {
    payment_id: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<&'r RawValue>,
}

/// A request's fields as they were written.
type Fields = BTreeMap<String, Box<RawValue>>;

impl TransactionService {
    /// A service that has seen nothing yet.
    #[must_use]
    pub fn new(settings: TransactionServiceSettings, requests: Queue, results: Queue) -> Self {
        let (known, outgoing) = (HashMap::new(), BTreeMap::new());
        Self { settings, requests, results, known, outgoing, decided: 0, saw: Saw::default() }
    }

    /// How it behaves.
    #[must_use]
    pub fn settings(&self) -> &TransactionServiceSettings {
        &self.settings
    }

    /// What it has seen and said so far.
    #[must_use]
    pub fn saw(&self) -> Saw {
        self.saw
    }

    /// Takes all requests there are and sends the results whose time has come.
    pub fn step(&mut self, now: DateTime<Utc>) -> Step {
        let mut step = Step::default();
        loop {
            let received = self.requests.receive(MAX_RECEIVED, now);
            if received.is_empty() {
                break;
            }
            for message in received {
                if self.take(&message.body, now).is_some() {
                    self.requests.delete(&message.receipt_handle);
                    step.taken += 1;
                } else {
                    self.saw.unreadable += 1;
                }
            }
        }
        while let Some(next) = self.outgoing.first_entry()
            && next.key().0 <= now
        {
            let (payment, result) = next.remove();
            step.answered += u64::from(self.answer(payment, result, now));
        }
        step
    }

    /// Takes one request and decides when it is answered, and how often.
    fn take(&mut self, message: &str, now: DateTime<Utc>) -> Option<()> {
        let mut fields: Fields = serde_json::from_str(message).ok()?;
        let payment: PaymentId = serde_json::from_str::<String>(fields.get("paymentId")?.get()).ok()?.parse().ok()?;
        fields.remove("dispatchAttempt");
        let content = digest(&fields);
        let known = self.known.entry(payment).or_insert_with(|| {
            self.saw.payments += 1;
            Known { content, requests: 0, results: 0 }
        });
        known.requests += 1;
        self.saw.requests += 1;
        self.saw.other_contents += u64::from(known.content != content);

        let mut random = self.settings.random(payment, known.requests);
        let result = self.result(payment, &fields)?;
        let twice = random.u16(0..1_000) < self.settings.repeats_per_thousand;
        for _ in 0..=u8::from(twice) {
            self.decided += 1;
            let at = now + self.settings.delay(&mut random);
            self.outgoing.insert((at, self.decided), (payment, result.clone()));
        }
        Some(())
    }

    /// The result of a payment, which tells what was asked for, so that nobody has to look it up.
    fn result(&self, payment: PaymentId, fields: &Fields) -> Option<String> {
        let outcome = self.settings.outcome_of(payment);
        let (word, transaction_id, reason) = match &outcome {
            Settlement::Processed(id) => ("PROCESSED", Some(id.as_str()), None),
            Settlement::Failed(reason) => ("FAILED", None, Some(reason.as_str())),
        };
        let echo = |name: &str| fields.get(name).map(|value| &**value);
        let (account_id, due_at) = (echo("accountId"), echo("dueAt"));
        let payment_id = payment.to_string();
        serde_json::to_string(&ResultJson { payment_id, outcome: word, transaction_id, reason, account_id, due_at })
            .ok()
    }

    fn answer(&mut self, payment: PaymentId, result: String, now: DateTime<Utc>) -> bool {
        let sent = self.results.send(result, now).is_ok();
        if sent && let Some(known) = self.known.get_mut(&payment) {
            known.results += 1;
            self.saw.results += 1;
            self.saw.repeated_results += u64::from(known.results > 1);
        }
        sent
    }
}

/// A digest of a content, byte for byte: lengths keep one field from running into the next.
fn digest(fields: &Fields) -> Uuid {
    let mut text = String::new();
    for (name, value) in fields {
        text.extend([&name.len().to_string(), ":", name, &value.get().len().to_string(), ":", value.get()]);
    }
    Uuid::new_v5(&NAMESPACE, text.as_bytes())
}

#[cfg(test)]
mod tests;
