//! Intents: what clients want, and what they were told.

use anyhow::{Context as _, Result};
use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeZone as _, Utc};
use chrono_tz::Tz;
use fastrand::Rng;
use payments_local::payload::DataKind;
use serde_json::{Value, json};

/// The fewest bytes of a payment's data.
const LEAST_DATA: usize = 50;

/// What a client wants, and what it was told.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The account.
    pub account: String,
    /// The idempotency key.
    pub key: String,
    /// The amount, which no other intent has.
    pub amount: u64,
    /// When the payment is to be made, as the client writes it: a date, or an instant in whole seconds of UTC.
    pub scheduled_for: String,
    /// The account that is paid.
    pub payee: String,
    /// The currency.
    pub currency: &'static str,
    /// The reference that the client gives.
    pub reference: Option<String>,
    /// The data that the client adds.
    pub data: Value,
    /// The bank's time zone, in which a date begins and ends; `None` if the payments have no dates.
    pub zone: Option<Tz>,
    /// The payment's id, once a client was told.
    pub accepted: Option<String>,
    /// Whether the API refused the payment for good.
    pub refused: bool,
    /// Whether a client was told that the payment is cancelled.
    pub cancelled: bool,
    /// Whether the transaction service contradicts itself, so that either settlement is right.
    pub contested: bool,
}

impl Intent {
    /// Returns an intent of which no client was told anything yet.
    #[must_use]
    pub fn new(account: String, amount: u64, scheduled_for: String) -> Self {
        Self {
            account,
            key: format!("key-{amount}"),
            amount,
            scheduled_for,
            payee: "landlord".to_owned(),
            currency: "GBP",
            reference: None,
            data: json!({ "note": format!("rent {amount}") }),
            zone: None,
            accepted: None,
            refused: false,
            cancelled: false,
            contested: false,
        }
    }

    /// Returns the same intent at a bank of this zone, with a payee, a currency and data that its neighbours do not have,
    /// and every third one with a reference.
    #[must_use]
    pub fn at_bank_of(self, zone: Tz) -> Self {
        let payee = format!("payee-{}", self.amount % 7);
        let currency = match self.amount % 3 {
            0 => "GBP",
            1 => "EUR",
            _ => "USD",
        };
        let reference = self.amount.is_multiple_of(3).then(|| format!("INV {}/(a),b+c:d?e.f", self.amount));
        let mut random = Rng::with_seed(self.amount);
        let kind = random.choice(DataKind::ALL).unwrap_or_default();
        let bytes = LEAST_DATA + usize::from(random.u16(0..2_000));
        let data = kind.value(&mut random, bytes);
        Self { payee, currency, reference, data, zone: Some(zone), ..self }
    }

    /// Returns the id that a client was told.
    ///
    /// # Errors
    /// If no client was told one.
    pub fn id(&self) -> Result<&str> {
        self.accepted.as_deref().context("the payment was not accepted")
    }

    /// Returns the body of the create.
    #[must_use]
    pub fn body(&self) -> Value {
        self.referenced(json!({
            "payeeAccountId": self.payee, "amountMinor": self.amount, "currency": self.currency,
            "scheduledFor": self.scheduled_for, "data": self.data,
        }))
    }

    /// Returns this JSON with the reference, if there is one.
    fn referenced(&self, mut json: Value) -> Value {
        if let Some(reference) = &self.reference {
            json["reference"] = reference.as_str().into();
        }
        json
    }

    /// Returns the entry of a batch.
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut entry = self.body();
        entry["accountId"] = self.account.clone().into();
        entry["idempotencyKey"] = self.key.clone().into();
        entry
    }

    /// Returns the request that the transaction service may receive, as one that it did receive has it where clients
    /// do not decide: the dispatch attempt, the id before a client is told, the instant of a date.
    #[must_use]
    pub fn request(&self, received: &Value) -> Value {
        let body = self.body();
        self.referenced(json!({
            "paymentId": self.accepted.as_deref().map_or_else(|| received["paymentId"].clone(), Value::from),
            "accountId": self.account, "payeeAccountId": body["payeeAccountId"], "amountMinor": self.amount,
            "currency": body["currency"], "data": body["data"],
            "dueAt": self.due_at().map_or_else(|| received["dueAt"].clone(), Value::from),
            "dispatchAttempt": received["dispatchAttempt"],
        }))
    }

    /// Returns when the payment is due: at the instant that the client named, or as the date begins in the bank's zone.
    #[must_use]
    pub fn due(&self) -> Option<DateTime<Utc>> {
        if let Ok(instant) = self.scheduled_for.parse() {
            return Some(instant);
        }
        let midnight = self.scheduled_for.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN);
        // No clock of these zones is changed at midnight.
        Some(self.zone?.from_local_datetime(&midnight).single()?.to_utc())
    }

    /// Returns when the payment is due, as it is written.
    #[must_use]
    pub fn due_at(&self) -> Option<String> {
        self.due().map(|due| due.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// Returns the instant of its head's slot, as it is written: when the payment was due at first.
    #[must_use]
    pub fn slot_at(&self) -> Option<String> {
        // Nothing changes when a payment is due.
        self.due_at()
    }

    /// Whether the date on which the payment is due is over at an instant.
    #[must_use]
    pub fn has_passed(&self, now: DateTime<Utc>) -> bool {
        let today = self.zone.map(|zone| now.with_timezone(&zone).date_naive());
        self.due_date().is_some_and(|date| today.is_some_and(|today| date < today))
    }

    /// Returns the bank's date of that instant.
    #[must_use]
    pub fn due_date(&self) -> Option<NaiveDate> {
        Some(self.due()?.with_timezone(&self.zone?).date_naive())
    }
}
