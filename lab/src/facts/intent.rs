//! Intents: the wishes of clients, and the answers that they got.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_model::{AmendmentId, PaymentId};
use serde_json::{Value, json};

use crate::facts::closed_dates::opens_after;
use crate::facts::zone::Zone;

/// The fewest bytes of a payment's data.
const LEAST_DATA: usize = 50;

/// The wish of a client, and the answers that it got.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The account.
    pub account: String,
    /// The idempotency key.
    pub key: String,
    /// The amount, which no other intent has.
    pub amount: u64,
    /// The date of the payment, as the client writes it: a date, or an instant in whole seconds of UTC.
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
    pub(crate) zone: Option<Zone>,
    /// The payment's id, once a client was told.
    pub accepted: Option<String>,
    /// Whether the API refused the payment for good.
    pub refused: bool,
    /// Whether a client was told that the payment is cancelled.
    pub cancelled: bool,
    /// Whether the transaction service contradicts itself, so that either settlement is right.
    pub contested: bool,
    /// The amendments that clients want, in the order in which they first asked for them.
    pub amendments: Vec<Amendment>,
    /// The names of amendments whose details a restore lost.
    pub lost_details: Vec<String>,
    /// The first date of the payment, if an amendment changed it.
    first_for: Option<String>,
    /// The due time to which the bank moved the payment.
    moved_to: Option<String>,
}

/// An amendment that a client asks for, or that the bank makes.
#[derive(Debug, Clone)]
pub struct Amendment {
    /// Its idempotency key.
    pub key: String,
    /// The version of the payment that its client has seen.
    pub seen: u64,
    /// The content after the amendment.
    pub wanted: Box<Intent>,
    /// Whether a client was told that it is done.
    pub accepted: bool,
    /// Of the bank's own amendment, the name of the details that it follows; empty if they are the first ones.
    pub redates: Option<String>,
}

impl Amendment {
    /// Returns the name that heads have for its details: its version and its id.
    #[must_use]
    pub fn name(&self, payment_id: &str) -> Option<String> {
        let payment_id = payment_id.parse::<PaymentId>().ok()?;
        let id = match self.redates.as_deref() {
            None => AmendmentId::derive(payment_id, &self.key.parse().ok()?),
            Some(before) => {
                let before = if before.is_empty() { None } else { Some(before.parse().ok()?) };
                let (version, due_at) = (u32::try_from(self.seen).ok()?, self.wanted.due_at()?.parse().ok()?);
                AmendmentId::for_redate(payment_id, (version, before), due_at)
            }
        };
        Some(format!("{}#{id}", self.seen + 1))
    }
}

impl Intent {
    /// Whether reading or amending the payment at this path answers 500, because a restore lost details of it.
    pub(crate) fn is_unreadable_at(&self, path: &str) -> bool {
        !self.lost_details.is_empty() && self.accepted.as_deref().is_some_and(|id| path.contains(id))
    }

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
            amendments: Vec::new(),
            lost_details: Vec::new(),
            first_for: None,
            moved_to: None,
        }
    }

    /// Returns the same intent at a bank of this zone, with a payee, a currency and data that its neighbours do not have,
    /// and every third one with a reference.
    #[must_use]
    pub(crate) fn at_bank_of(self, zone: Zone) -> Self {
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

    /// Returns this payment at another time. The caller makes all other changes.
    #[must_use]
    pub fn made_for(&self, scheduled_for: String) -> Self {
        let first_for = self.first_for.clone().unwrap_or_else(|| self.scheduled_for.clone());
        Self { scheduled_for, first_for: Some(first_for), moved_to: None, amendments: Vec::new(), ..self.clone() }
    }

    /// Returns what the payment is with the bank's amendment of this name, which it made at an instant. `None` if it is not what the bank
    /// does.
    pub(crate) fn redated_as(
        &self,
        payment_id: &str,
        (name, previous): (&str, &str),
        (due_at, made_at): (&str, &str),
    ) -> Option<Self> {
        let content = self.in_force(payment_id, previous)?;
        let seen = name.split_once('#')?.0.parse::<u64>().ok()?.checked_sub(1)?;
        let (made_at, (due, zone)) = (made_at.parse().ok()?, content.due().zip(self.zone.as_ref())?);
        let should = opens_after(due, made_at, zone)?;
        let amendment = content.redated((seen, previous), due_at.to_owned());
        let is_it = should == due_at && amendment.name(payment_id).as_deref() == Some(name);
        is_it.then_some(*amendment.wanted)
    }

    /// Returns the amendment by which the bank makes this content due at another instant, after the
    /// version that is `seen` and the details of the name `before`.
    #[must_use]
    pub fn redated(&self, (seen, before): (u64, &str), due_at: String) -> Amendment {
        let wanted = Self { moved_to: Some(due_at), ..self.made_for(self.scheduled_for.clone()) };
        let (key, redates) = ("redate".to_owned(), Some(before.to_owned()));
        Amendment { key, seen, wanted: Box::new(wanted), accepted: false, redates }
    }

    /// Leaves the content of an amendment due where the bank had moved the one before, if neither its date nor its currency is another.
    pub(crate) fn keep_moved(&mut self, payment_id: &str, name: &str, previous: &str) {
        let Some(kept) = self.following(payment_id, name, previous) else { return };
        let is_it = |amendment: &&mut Amendment| amendment.name(payment_id).as_deref() == Some(name);
        if let Some(amendment) = self.amendments.iter_mut().find(is_it) {
            amendment.wanted.moved_to = kept.moved_to;
        }
    }

    /// Returns what the amendment of a name wants if it follows another one; as [`Intent::in_force`] otherwise.
    pub(crate) fn following(&self, payment_id: &str, name: &str, previous: &str) -> Option<Self> {
        let (wanted, before) = (self.in_force(payment_id, name)?, self.in_force(payment_id, previous)?);
        let is_redate =
            |amendment: &Amendment| amendment.redates.is_some() && amendment.name(payment_id).as_deref() == Some(name);
        if self.amendments.iter().any(is_redate) {
            return Some(wanted);
        }
        let stays = (&wanted.scheduled_for, wanted.currency) == (&before.scheduled_for, before.currency);
        Some(Self { moved_to: before.moved_to.filter(|_| stays), ..wanted })
    }

    /// Whether the bank moved this payment since it was the other one.
    pub(crate) fn is_moved_since(&self, before: &Self) -> bool {
        let same = (&self.scheduled_for, self.currency) == (&before.scheduled_for, before.currency);
        same && self.moved_to != before.moved_to
    }

    /// Returns what is wanted once the amendment of this name is in force; with an empty name, what was wanted at first. `None` if
    /// nobody asked for that.
    #[must_use]
    pub fn in_force(&self, payment_id: &str, name: &str) -> Option<Self> {
        let (accepted, cancelled) = (self.accepted.clone(), self.cancelled);
        if name.is_empty() {
            return Some(Self { amendments: Vec::new(), ..self.clone() });
        }
        let found = self.amendments.iter().find(|amendment| amendment.name(payment_id).as_deref() == Some(name))?;
        Some(Self { accepted, cancelled, ..(*found.wanted).clone() })
    }

    /// Returns all that was ever wanted of this payment, what was wanted at first before the rest.
    pub fn contents(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.amendments.iter().map(|amendment| &*amendment.wanted))
    }

    /// Returns the amounts that the payment can have. No other payment has one of them.
    #[must_use]
    pub fn amounts(&self) -> BTreeSet<u64> {
        self.contents().map(|wanted| wanted.amount).collect()
    }

    /// Whether the payment can have this amount.
    #[must_use]
    pub fn has_amount(&self, amount: &Value) -> bool {
        self.contents().any(|wanted| *amount == wanted.amount)
    }

    /// Whether a client may be shown this payment, as far as it is a content that somebody asked for.
    #[must_use]
    pub fn is_shown_as(&self, payment: &Value) -> bool {
        self.contents().any(|wanted| {
            payment["amountMinor"] == wanted.amount
                && payment["payeeAccountId"] == wanted.payee
                && payment["currency"] == wanted.currency
                && payment["scheduledFor"] == wanted.scheduled_for
                && payment["reference"].as_str() == wanted.reference.as_deref()
                && payment.get("data").is_none_or(|data| *data == wanted.data)
                && wanted.due_at().is_none_or(|due_at| payment["dueAt"] == due_at)
        })
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

    /// Returns the payment and its transfer, as requests and results name them.
    #[must_use]
    pub fn transfer(&self) -> Value {
        json!({
            "paymentId": self.accepted, "amountMinor": self.amount, "currency": self.currency, "payeeAccountId": self.payee,
        })
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
            "v": 1, "kind": "payment",
            "paymentId": self.accepted.as_deref().map_or_else(|| received["paymentId"].clone(), Value::from),
            "accountId": self.account, "payeeAccountId": body["payeeAccountId"], "amountMinor": self.amount,
            "currency": body["currency"], "data": body["data"],
            "dueAt": self.due_at().map_or_else(|| received["dueAt"].clone(), Value::from),
            "dispatchAttempt": received["dispatchAttempt"],
        }))
    }

    /// Returns when the payment is due: at the instant that the client named, or as the date begins in the bank's zone, or where the bank
    /// moved it.
    #[must_use]
    pub fn due(&self) -> Option<DateTime<Utc>> {
        self.instant_of(self.moved_to.as_ref().unwrap_or(&self.scheduled_for))
    }

    fn instant_of(&self, scheduled_for: &str) -> Option<DateTime<Utc>> {
        if let Ok(instant) = scheduled_for.parse() {
            return Some(instant);
        }
        self.zone.as_ref()?.start_of(scheduled_for.parse().ok()?)
    }

    /// Returns when the payment is due, as it is written.
    #[must_use]
    pub fn due_at(&self) -> Option<String> {
        self.due().map(|due| due.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// Returns the instant of its head's slot, as it is written: when the payment was due at first.
    #[must_use]
    pub fn slot_at(&self) -> Option<String> {
        let first_for = self.first_for.as_ref().unwrap_or(&self.scheduled_for);
        self.instant_of(first_for).map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// Whether the date on which the payment is due is over at an instant.
    #[must_use]
    pub fn has_passed(&self, now: DateTime<Utc>) -> bool {
        let today = self.zone.as_ref().and_then(|zone| zone.date_of(now));
        self.due_date().is_some_and(|date| today.is_some_and(|today| date < today))
    }

    /// Returns the bank's date of that instant.
    #[must_use]
    pub fn due_date(&self) -> Option<NaiveDate> {
        self.zone.as_ref()?.date_of(self.due()?)
    }
}
