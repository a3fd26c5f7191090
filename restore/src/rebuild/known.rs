//! The events of each payment since an instant.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use payments_model::{
    AccountId, Actor, Amendment, AmendmentName, BusinessDate, Details, DetailsKey, DuePayment, Event, Failure, Head,
    HeadKey, Instruction, Money, PaymentId, Reference, ScheduledFor, Settlement, State, Status, UtcSecond,
};
use payments_store::LogPosition;
use serde::Deserialize;

use crate::named::named;

/// The types of the first event of an epoch that a restore began, and of its payments' events.
const RESTORED: &str = "log.restored";
const PAYMENT_RESTORED: &str = "payment.restored";

/// The events and reports of a payment. With three versions, a payment takes about half a kilobyte: a day of a million
/// payments, half a gigabyte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The payment, with the due time of its last event.
    pub(crate) payment: DuePayment,
    /// The key of the head: a guess, unless a table has it.
    pub(crate) key: HeadKey,
    /// The epoch of the last event.
    epoch: u32,
    /// The versions that have an event, in their order.
    pub(crate) versions: Vec<Version>,
    /// Whether something else than this system changed the payment.
    pub(crate) is_irregular: bool,
    /// The time of settlement in a published report that lists the payment.
    pub(crate) reported: Option<UtcSecond>,
}

/// A version of a payment, by its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) number: u32,
    pub(crate) status: Status,
    pub(crate) at: UtcSecond,
    /// The due time and due date at this version.
    pub(crate) due: Option<(UtcSecond, BusinessDate)>,
    /// The actor who created, amended or cancelled the payment, as in trails. An operator has no name in events.
    pub(crate) by: Actor,
    /// The settlement, if this version is one.
    pub(crate) settlement: Option<Settlement>,
    /// The amendment, if this version is one.
    pub(crate) amendment: Option<LoggedAmendment>,
}

/// An amendment, by its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedAmendment {
    pub(crate) name: AmendmentName,
    /// The changed fields.
    pub(crate) changed: Vec<String>,
    pub(crate) payee: AccountId,
    pub(crate) money: Money,
    pub(crate) reference: Option<Reference>,
    /// The date or time that the client wants.
    pub(crate) scheduled_for: ScheduledFor,
}

impl LoggedAmendment {
    fn from_event(event: &Json, version: u32) -> Result<Option<Self>> {
        let Some(id) = &event.amendment_id else { return Ok(None) };
        let (payee, amount) = (event.payee_account_id.as_deref(), event.amount_minor);
        Ok(Some(Self {
            name: AmendmentName { version, id: id.parse()? },
            changed: event.changed_fields.clone().unwrap_or_default(),
            payee: payee.context("it has no payee")?.parse()?,
            money: Money {
                amount: amount.context("it has no amount")?.try_into()?,
                currency: event.currency.as_deref().context("it has no currency")?.parse()?,
            },
            reference: event.reference.as_deref().map(str::parse).transpose()?,
            scheduled_for: event.scheduled_for.as_deref().context("it does not say for when it is")?.parse()?,
        }))
    }

    /// A substitute for the amendment's lost details: as much of them as a head has.
    pub(crate) fn stand_in(&self, head: &Head, version: &Version) -> Result<Details> {
        let (due_at, due_date) = version.due.unwrap_or((head.due_at, head.due_date));
        Ok(Details {
            payment_id: head.payment_id,
            instruction: Instruction {
                account: head.account.clone(),
                payee: self.payee.clone(),
                money: self.money,
                scheduled_for: self.scheduled_for,
                date_rule: None,
                reference: self.reference.clone(),
                data: None,
            },
            slot_at: head.slot_at,
            due_at,
            due_date,
            moved: None,
            shard: head.shard,
            created_at: version.at,
            created_by: version.by.clone(),
            amendment: Some(Amendment { name: self.name, previous: head.amendment }),
        })
    }
}

impl Version {
    /// The transition that led to this version, and its actor. `None` for the first version and for amendments.
    pub(crate) fn transition(&self) -> Option<(Event, Actor)> {
        Some(match (self.status, &self.settlement) {
            (Status::Pending, _) => (Event::Sweep, Actor::sweep()),
            (Status::Cancelled, _) => (Event::Cancel, self.by.clone()),
            (_, Some(settlement)) => (Event::Settle(settlement.clone()), Actor::transaction_service()),
            _ => return None,
        })
    }

    /// Whether a payment in this state is at this version.
    pub(crate) fn is(&self, version: u32, state: &State) -> bool {
        let same_end = match (state, &self.settlement) {
            (State::Processed(id), Some(Settlement::Processed(known))) => id == known,
            (State::Failed(failure), Some(Settlement::Failed(known))) => failure.says_the_same_as(known),
            (State::Processed(_) | State::Failed(_), _) => false,
            _ => true,
        };
        version == self.number && state.status() == self.status && same_end
    }
}

/// All known payments.
#[derive(Debug, Default)]
pub(crate) struct Payments {
    pub(crate) known: BTreeMap<PaymentId, Known>,
    /// The dates of all payments of the events that were read, also of earlier events.
    pub(crate) dates: BTreeSet<BusinessDate>,
    /// The number of events that were read.
    pub(crate) events: u64,
    /// The marks of changes that may be missing.
    pub(crate) gaps: Vec<String>,
    /// The time of the first change that was read. A `payment.restored` is not a change.
    pub(crate) first_at: Option<UtcSecond>,
    /// For each restore that was read: the instant to which it restored the tables, and the time of its end.
    pub(crate) restores: Vec<(UtcSecond, UtcSecond)>,
    /// The epoch of the last `log.restored` that was read, and the time of its beginning.
    begun: Option<(u32, UtcSecond)>,
    /// The time of the last change that was read.
    pub(crate) last_at: Option<UtcSecond>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    id: String,
    r#type: String,
    at: String,
    epoch: u32,
    account_id: Option<String>,
    payment_id: Option<String>,
    scheduled_for: Option<String>,
    due_at: Option<String>,
    due_date: Option<String>,
    payee_account_id: Option<String>,
    amount_minor: Option<i64>,
    currency: Option<String>,
    reference: Option<String>,
    version: Option<u32>,
    status: Option<String>,
    by: Option<By>,
    transaction_id: Option<String>,
    failure_code: Option<String>,
    failure_reason: Option<String>,
    amendment_id: Option<String>,
    changed_fields: Option<Vec<String>>,
    restored_to: Option<String>,
}

/// The first event of an epoch: its time, and the end of the epoch before.
pub(crate) struct Mark {
    pub(crate) at: UtcSecond,
    /// The end of the epoch before, if a restore began this one.
    pub(crate) end: Option<LogPosition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkJson {
    id: String,
    r#type: String,
    at: String,
    end_cursor: Option<String>,
}

impl Mark {
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let event: MarkJson = serde_json::from_str(json).context("an event cannot be read")?;
        let at: UtcSecond = event.at.parse().with_context(|| format!("the event {} has no time", event.id))?;
        let end =
            event.end_cursor.filter(|_| event.r#type == RESTORED).map(|end| end.parse::<LogPosition>()).transpose();
        Ok(Self { at, end: end.with_context(|| format!("the event {} names no place", event.id))? })
    }
}

/// The actor of an event.
#[derive(Deserialize)]
struct By {
    kind: String,
    name: Option<String>,
}

impl By {
    /// The actor of a change into `status`, as in trails.
    fn stored(&self, status: Status) -> Result<Actor> {
        let named =
            |letter| Ok(format!("{letter}:{}", self.name.as_deref().context("its actor has no name")?).parse()?);
        match &*self.kind {
            "client" => named('c'),
            "file" => named('f'),
            "operator" => Ok(Actor::operator("")),
            "transaction-service" => Ok(Actor::transaction_service()),
            "bank" if status == Status::Pending => Ok(Actor::sweep()),
            // An event does not say which undo it was.
            "bank" if status == Status::Cancelled => Ok("b:undo".parse()?),
            "bank" => Ok(Actor::redate()),
            kind => bail!("its actor's kind is unknown: {kind}"),
        }
    }
}

impl Json {
    fn payment(&self) -> Option<Result<DuePayment>> {
        let account = self.account_id.as_ref()?;
        let payment = self.payment_id.as_ref()?;
        let due_at = self.due_at.as_ref()?;
        let payment = named(account, payment, due_at);
        Some(payment.with_context(|| format!("the event {} names no payment", self.id)))
    }

    fn dates(&self) -> Result<Vec<BusinessDate>> {
        Ok(match (&self.due_date, &self.due_at) {
            (Some(date), _) => vec![date.parse()?],
            // The days of the instant in all time zones.
            (None, Some(at)) => [-1, 0, 1]
                .into_iter()
                .map(|days| date_of(at.parse::<UtcSecond>()?.saturating_add(chrono::TimeDelta::days(days))))
                .collect::<Result<_>>()?,
            (None, None) => Vec::new(),
        })
    }

    fn version(&self, at: UtcSecond) -> Result<Option<Version>> {
        let (Some(number @ 1..), Some(status)) = (self.version, &self.status) else { return Ok(None) };
        let settlement = match (&self.transaction_id, &self.failure_code, &self.failure_reason) {
            (Some(id), ..) => Some(Settlement::Processed(id.parse()?)),
            (None, Some(code), Some(reason)) => Some(Settlement::Failed(Failure::from_stored(code, reason)?)),
            _ => None,
        };
        let due = self.due_at.as_ref().zip(self.due_date.as_ref());
        let due = due.map(|(at, date)| anyhow::Ok((at.parse()?, date.parse()?))).transpose()?;
        let status = status.parse()?;
        let by = self.by.as_ref().context("it has no actor")?.stored(status)?;
        let amendment = LoggedAmendment::from_event(self, number)?;
        Ok(Some(Version { number, status, at, due, by, settlement, amendment }))
    }
}

/// The date of an instant, by UTC.
pub(crate) fn date_of(at: UtcSecond) -> Result<BusinessDate> {
    Ok(at.as_chrono().date_naive().to_string().parse()?)
}

impl Known {
    /// The keys of the details of the log's amendments.
    pub(crate) fn amended_details(&self) -> impl Iterator<Item = DetailsKey> + '_ {
        let payment_id = self.payment.payment_id;
        let amendments = self.versions.iter().filter_map(|version| version.amendment.as_ref());
        amendments.map(move |amended| DetailsKey { payment_id, amendment: Some(amended.name) })
    }

    fn new(payment: &DuePayment) -> Self {
        let (key, payment) = (payment.guessed_key(), payment.clone());
        Self { payment, key, epoch: 0, versions: Vec::new(), is_irregular: false, reported: None }
    }

    /// Takes an event. If its epoch is later, a restore undid all versions after it.
    fn take(&mut self, epoch: u32, version: Version) {
        let is_later = epoch > self.epoch;
        self.versions.retain(|before| before.number < version.number || (!is_later && before.number > version.number));
        self.epoch = epoch;
        self.versions.push(version);
        self.versions.sort_by_key(|version| version.number);
    }
}

impl Payments {
    /// Takes an event of the log.
    pub(crate) fn take(&mut self, json: &str, since: UtcSecond) -> Result<()> {
        let event: Json = serde_json::from_str(json).context("an event cannot be read")?;
        self.events += 1;
        let at: UtcSecond = event.at.parse().with_context(|| format!("the event {} has no time", event.id))?;
        self.last_at = self.last_at.max(Some(at));
        if event.r#type == "log.gap" && at >= since {
            self.gaps.push(json.to_owned());
        }
        self.dates.extend(event.dates().with_context(|| format!("the event {} has no due date", event.id))?);
        let is_told = event.r#type == PAYMENT_RESTORED;
        if event.r#type == RESTORED {
            self.begun = Some((event.epoch, at));
            if let Some(to) = &event.restored_to {
                self.restores.push((to.parse()?, at));
            }
        }
        if !is_told {
            self.first_at.get_or_insert(at);
        }
        // A `payment.restored` is true since its epoch began, and has the time of an old change.
        let begun = self.begun.filter(|(epoch, _)| *epoch == event.epoch).map_or(since, |(_, begun)| begun);
        let true_since = if is_told { at.max(begun) } else { at };
        let Some(payment) = event.payment().filter(|_| true_since >= since).transpose()? else { return Ok(()) };
        let version = event.version(at).with_context(|| format!("the event {} cannot be read", event.id))?;
        let known = self.entry(&payment);
        known.payment = payment;
        known.is_irregular |= event.r#type == "payment.irregular";
        match version {
            Some(version) => known.take(event.epoch, version),
            // After a restore, the payment was missing.
            None if event.version == Some(0) => known.versions.clear(),
            None => {}
        }
        Ok(())
    }

    /// Whether there is an event of a payment.
    pub(crate) fn has_versions(&self, payment: PaymentId) -> bool {
        self.known.get(&payment).is_some_and(|known| !known.versions.is_empty())
    }

    /// The entry of a payment, which is created if missing.
    pub(crate) fn entry(&mut self, payment: &DuePayment) -> &mut Known {
        self.known.entry(payment.payment_id).or_insert_with(|| Known::new(payment))
    }
}

#[cfg(test)]
mod tests;
