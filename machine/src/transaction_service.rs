//! A simulation of the bank's transaction service: it receives requests and sends settlement results.
//!
//! The results come late and out of order. Some are repeated, and some are failures. As in the real
//! service, a payment id has one settlement and one transaction id, however often it is requested.
//! The seed and the payment id decide everything, so the order of requests changes nothing.

mod chosen;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_model::{Failure, PaymentId, Settlement, TransactionId};
use payments_queue::Queue;
use payments_queue::in_process::MAX_RECEIVED;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

pub use chosen::Chosen;

/// The behaviour of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionServiceSettings {
    /// The seed of all random choices.
    pub seed: u64,
    /// The shortest time from a request to its settlement result.
    pub shortest_delay: TimeDelta,
    /// The longest time from a request to its settlement result.
    pub longest_delay: TimeDelta,
    /// The failing payments in a thousand.
    pub failures_per_thousand: u16,
    /// The repeated settlement results in a thousand.
    pub repeats_per_thousand: u16,
    /// Whether a payment's reference can choose its settlement, as [`Chosen`] says.
    pub is_sandbox: bool,
}

impl TransactionServiceSettings {
    /// Returns the behaviour of a service that takes 1 to 90 seconds, fails 2 payments in a hundred and repeats 3 results
    /// in a hundred.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            shortest_delay: TimeDelta::seconds(1),
            longest_delay: TimeDelta::seconds(90),
            failures_per_thousand: 20,
            repeats_per_thousand: 30,
            is_sandbox: false,
        }
    }

    /// Returns how a payment ends, which is the same each time.
    pub fn settlement_of(&self, payment: PaymentId) -> Settlement {
        match self.end_of(payment) {
            End::Processed(id) => Settlement::Processed(id),
            End::Failed(code, reason) => Settlement::Failed(Failure::new(code, reason)),
        }
    }

    fn end_of(&self, payment: PaymentId) -> End {
        let mut random = self.random(payment, 0);
        if random.u16(0..1_000) < self.failures_per_thousand {
            let (code, reason) = random.choice(FAILURES).copied().unwrap_or_default();
            return End::Failed(code, reason);
        }
        let (high, _) = derived(self.seed, payment, "transaction").as_u64_pair();
        match format!("TX-{high:016X}").parse::<TransactionId>() {
            Ok(id) => End::Processed(id),
            Err(_) => End::Failed(None, "no transaction id"),
        }
    }

    /// Returns the random source of the n-th request for a payment; 0 is that of the payment itself.
    fn random(&self, payment: PaymentId, nth: u64) -> Rng {
        Rng::with_seed(derived(self.seed, payment, &nth.to_string()).as_u64_pair().0)
    }

    fn delay(&self, random: &mut Rng) -> TimeDelta {
        let (from, to) = (self.shortest_delay.num_milliseconds(), self.longest_delay.num_milliseconds());
        TimeDelta::milliseconds(random.i64(from..=to.max(from)))
    }
}

/// The end of a payment, in the words of the service: not every code of it is a listed one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Processed(TransactionId),
    Failed(Option<&'static str>, &'static str),
}

/// The codes and reasons of failed payments.
const FAILURES: &[(Option<&str>, &str)] = &[
    (Some("AM04"), "insufficient funds"),
    (Some("AC07"), "the payee's account is closed"),
    (Some("LIMIT-1"), "the limit of the day is reached"),
    (None, "the payee is unknown"),
];

/// The namespace of the UUIDs that are derived from a seed and a payment id.
const NAMESPACE: Uuid = Uuid::from_u128(0x7a3f_8f0e_52c4_4a51_8d0b_1be6_90c2_f417);

fn derived(seed: u64, payment: PaymentId, what: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{seed}/{payment}/{what}").as_bytes())
}

/// The numbers of received and sent messages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Requests that it accepted.
    pub requests: u64,
    /// Different payment ids in them.
    pub payments: u64,
    /// Requests that differ from the first of their payment in more than `dispatchAttempt`. There should be none.
    pub other_contents: u64,
    /// Receipts of messages that are not requests, which end in the dead-letter queue.
    pub unreadable: u64,
    /// Settlement results that it sent.
    pub results: u64,
    /// Settlement results that were not the first of their payment.
    pub repeated_results: u64,
}

/// The numbers of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Requests that it received.
    pub received: u64,
    /// Settlement results that it sent.
    pub answered: u64,
}

/// The service.
#[derive(Debug)]
pub struct TransactionService {
    settings: TransactionServiceSettings,
    requests: Queue,
    results: Queue,
    known: HashMap<PaymentId, Known>,
    /// Settlement results to send, by time and then by the order of their creation.
    outgoing: BTreeMap<(DateTime<Utc>, u64), (PaymentId, String)>,
    created: u64,
    counts: ServiceCounts,
}

/// The service's knowledge of a payment.
#[derive(Debug)]
struct Known {
    /// A digest of the first request: the requests themselves would be gigabytes for a million payments.
    content: Uuid,
    transfer: Transfer,
    requests: u64,
    results: u64,
}

/// The content of a payment's first request. Later requests do not change it: the service knows
/// requests by their payment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Transfer {
    amount_minor: i64,
    currency: Box<str>,
    payee_account_id: Box<str>,
}

impl Transfer {
    /// Reads it from a request's fields.
    fn from_fields(fields: &Fields) -> Option<Self> {
        let text = |name: &str| serde_json::from_str(fields.get(name)?.get()).ok();
        let amount_minor = serde_json::from_str(fields.get("amountMinor")?.get()).ok()?;
        Some(Self { amount_minor, currency: text("currency")?, payee_account_id: text("payeeAccountId")? })
    }
}

/// A settlement result. The account and the due time are those of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultJson<'r> {
    v: u32,
    kind: &'static str,
    payment_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'r str>,
    #[serde(flatten)]
    transfer: &'r Transfer,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<&'r RawValue>,
}

/// A request's fields, each as its JSON text.
type Fields = BTreeMap<String, Box<RawValue>>;

impl TransactionService {
    /// Creates a service that has received nothing yet.
    pub fn new(settings: TransactionServiceSettings, requests: Queue, results: Queue) -> Self {
        let (known, outgoing) = (HashMap::new(), BTreeMap::new());
        Self { settings, requests, results, known, outgoing, created: 0, counts: ServiceCounts::default() }
    }

    /// Returns its behaviour.
    pub fn settings(&self) -> &TransactionServiceSettings {
        &self.settings
    }

    /// Whether this is the transfer that the first request of a payment asked for. `None` without a request.
    pub fn was_asked_for(&self, payment: PaymentId, amount_minor: u64, currency: &str, payee: &str) -> Option<bool> {
        let transfer = &self.known.get(&payment)?.transfer;
        let is_amount = u64::try_from(transfer.amount_minor) == Ok(amount_minor);
        Some(is_amount && *transfer.currency == *currency && *transfer.payee_account_id == *payee)
    }

    /// Returns the numbers of received and sent messages so far.
    pub fn counts(&self) -> ServiceCounts {
        self.counts
    }

    /// Receives all requests and sends the settlement results that are due.
    pub fn step(&mut self, now: DateTime<Utc>) -> Step {
        let mut step = Step::default();
        loop {
            let received = self.requests.receive(MAX_RECEIVED, now);
            if received.is_empty() {
                break;
            }
            for message in received {
                if self.accept(&message.body, now).is_some() {
                    self.requests.delete(&message.receipt_handle);
                    step.received += 1;
                } else {
                    self.counts.unreadable += 1;
                }
            }
        }
        while let Some(next) = self.outgoing.first_entry()
            && next.key().0 <= now
        {
            let (payment, result) = next.remove();
            step.answered += u64::from(self.send(payment, result, now));
        }
        step
    }

    /// Accepts a request, and schedules its settlement result. Returns nothing if the message is not a request of a known form and kind.
    fn accept(&mut self, message: &str, now: DateTime<Utc>) -> Option<()> {
        let mut fields: Fields = serde_json::from_str(message).ok()?;
        let is = |name: &str, value: &str| fields.get(name).is_some_and(|field| field.get() == value);
        if !is("v", "1") || !is("kind", "\"payment\"") {
            return None;
        }
        let payment: PaymentId = serde_json::from_str::<String>(fields.get("paymentId")?.get()).ok()?.parse().ok()?;
        fields.remove("dispatchAttempt");
        let (content, transfer) = (digest(&fields), Transfer::from_fields(&fields)?);
        let known = self.known.entry(payment).or_insert_with(|| {
            self.counts.payments += 1;
            Known { content, transfer, requests: 0, results: 0 }
        });
        known.requests += 1;
        self.counts.requests += 1;
        self.counts.other_contents += u64::from(known.content != content);
        let transfer = known.transfer.clone();

        let mut random = self.settings.random(payment, known.requests);
        let twice = random.u16(0..1_000) < self.settings.repeats_per_thousand;
        let chosen = if self.settings.is_sandbox { chosen_by(&fields) } else { None };
        let failed = End::Failed(Some(Chosen::CODE), Chosen::REASON);
        let end = match chosen {
            Some(Chosen::Never) => return Some(()),
            Some(Chosen::Refused) => failed.clone(),
            _ => self.settings.end_of(payment),
        };
        let result = result(payment, &transfer, &fields, &end)?;
        let late = if chosen == Some(Chosen::Late) { Chosen::LATE } else { TimeDelta::zero() };
        for _ in 0..=u8::from(twice || chosen == Some(Chosen::Twice)) {
            let at = now + late + self.settings.delay(&mut random);
            self.schedule(at, payment, result.clone());
        }
        if chosen == Some(Chosen::Contradicting) {
            let other = self::result(payment, &transfer, &fields, &failed)?;
            self.schedule(now + Chosen::CONTRADICTS_AFTER, payment, other);
        }
        Some(())
    }

    fn schedule(&mut self, at: DateTime<Utc>, payment: PaymentId, result: String) {
        self.created += 1;
        self.outgoing.insert((at, self.created), (payment, result));
    }

    fn send(&mut self, payment: PaymentId, result: String, now: DateTime<Utc>) -> bool {
        let sent = self.results.send(result, now).is_ok();
        if sent && let Some(known) = self.known.get_mut(&payment) {
            known.results += 1;
            self.counts.results += 1;
            self.counts.repeated_results += u64::from(known.results > 1);
        }
        sent
    }
}

/// The choice by a request's reference.
fn chosen_by(fields: &Fields) -> Option<Chosen> {
    Chosen::parse(&serde_json::from_str::<String>(fields.get("reference")?.get()).ok()?)
}

/// Returns the settlement result of a payment, with the account and the due time of the request.
fn result(payment: PaymentId, transfer: &Transfer, fields: &Fields, end: &End) -> Option<String> {
    let (word, transaction_id, failure_code, reason) = match end {
        End::Processed(id) => ("PROCESSED", Some(id.as_str()), None, None),
        End::Failed(code, reason) => ("FAILED", None, *code, Some(*reason)),
    };
    let echo = |name: &str| fields.get(name).map(|value| &**value);
    let (account_id, due_at) = (echo("accountId"), echo("dueAt"));
    let result = ResultJson {
        v: 1,
        kind: "settlement",
        payment_id: payment.to_string(),
        status: word,
        transaction_id,
        failure_code,
        failure_reason: reason,
        transfer,
        account_id,
        due_at,
    };
    serde_json::to_string(&result).ok()
}

/// Returns a digest of fields. Lengths separate the fields.
fn digest(fields: &Fields) -> Uuid {
    let mut text = String::new();
    for (name, value) in fields {
        text.extend([&name.len().to_string(), ":", name, &value.get().len().to_string(), ":", value.get()]);
    }
    Uuid::new_v5(&NAMESPACE, text.as_bytes())
}

#[cfg(test)]
mod tests;
