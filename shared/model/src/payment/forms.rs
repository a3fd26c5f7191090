//! A payment's three forms: instruction, details and head.
//!
//! A client sends the instruction. The details store it for ever. The head has the status, and changes with it.

use crate::account::AccountId;
use crate::actor::Actor;
use crate::business_days::date_move::DateMove;
use crate::business_days::due::Due;
use crate::business_days::rule::DateRule;
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::scheduled_for::ScheduledFor;
use crate::calendar::zone::BusinessZone;
use crate::money::Money;
use crate::payment::amendment::{Amended, Amendment, AmendmentId, AmendmentName, DetailsKey};
use crate::payment::data::PaymentData;
use crate::payment::payment_id::{PaymentId, Shard, ShardCount};
use crate::payment::settlement::{Failure, TransactionId};
use crate::payment::slot::{DuePayment, HeadKey, Place, Slot, SlotAt};
use crate::payment::transition::{Event, FIRST_VERSION, Refusal, State, Status, Transition};
use crate::reference::Reference;

/// The most entries of a trail: SCHEDULED, PENDING, and PROCESSED or FAILED.
pub const MAX_TRAIL_ENTRIES: usize = 3;

/// The name of the field that the bank's own amendments change.
pub const REDATED: &str = "dueAt";

/// A client's request for one payment, as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The account that pays.
    pub account: AccountId,
    /// The account that is paid.
    pub payee: AccountId,
    /// The amount.
    pub money: Money,
    /// The requested date or instant.
    pub scheduled_for: ScheduledFor,
    /// The rule for a closed date, if the client names one.
    pub date_rule: Option<DateRule>,
    /// The client's reference, which both ends see.
    pub reference: Option<Reference>,
    /// The client's own data, which the bank does not read.
    pub data: Option<PaymentData>,
}

impl Instruction {
    /// The fields in which `other` differs, by their names and in their order in the API. Data is
    /// compared byte by byte.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        [
            ("payeeAccountId", self.payee != other.payee),
            ("amountMinor", self.money.amount != other.money.amount),
            ("currency", self.money.currency != other.money.currency),
            ("scheduledFor", self.scheduled_for != other.scheduled_for),
            ("dateRule", self.date_rule != other.date_rule),
            ("reference", self.reference != other.reference),
            ("data", self.data != other.data),
        ]
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
    }
}

/// An accepted instruction, which is written once and never changed. A payment's first details are the idempotency
/// record of the create. An amendment's details are the idempotency record of the amendment.
///
/// Retries compute everything from the details. So a changed configuration or time-zone database
/// cannot turn a retry into a second payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The payment's id.
    pub payment_id: PaymentId,
    /// The client's instruction.
    pub instruction: Instruction,
    /// The instant of the head's slot: the first due time.
    pub slot_at: SlotAt,
    /// The due time.
    pub due_at: UtcSecond,
    /// The business date it falls due on.
    pub due_date: BusinessDate,
    /// The move that made the due time differ from the client's request, if any.
    pub moved: Option<DateMove>,
    /// The payment's shard in the indexes.
    pub shard: Shard,
    /// The time of the create or the amendment that wrote these details.
    pub created_at: UtcSecond,
    /// The actor of the create or the amendment.
    pub created_by: Actor,
    /// The amendment that wrote these details; `None` for the payment's first details.
    pub amendment: Option<Amendment>,
}

impl Details {
    /// Accepts an instruction at `now`, due at the requested time.
    #[must_use]
    pub fn accept(
        payment_id: PaymentId,
        instruction: Instruction,
        zone: BusinessZone,
        shards: ShardCount,
        now: UtcSecond,
        by: Actor,
    ) -> Self {
        let due = Due::as_asked(instruction.scheduled_for, zone);
        Self::accept_due(payment_id, instruction, due, shards, now, by)
    }

    /// Accepts an instruction at `created_at`, with the due time `due` by its currency's calendar.
    #[must_use]
    pub fn accept_due(
        payment_id: PaymentId,
        instruction: Instruction,
        due: Due,
        shards: ShardCount,
        created_at: UtcSecond,
        created_by: Actor,
    ) -> Self {
        let shard = payment_id.shard(shards);
        let Due { at: due_at, date: due_date, moved } = due;
        let slot_at = SlotAt::from_first_due(due_at);
        let amendment = None;
        Self { payment_id, instruction, slot_at, due_at, due_date, moved, shard, created_at, created_by, amendment }
    }

    /// Whether a sealed row has the data. Only finished payments are sealed, so no head is built from such details.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        matches!(self.instruction.data, Some(PaymentData::Sealed(_)))
    }

    /// The key of these details.
    #[must_use]
    pub fn details_key(&self) -> DetailsKey {
        DetailsKey { payment_id: self.payment_id, amendment: self.amendment.map(|amendment| amendment.name) }
    }

    /// Builds the details of the amendment `id`. The payment's head is `head`, and `self` are its details in force. The
    /// new details are accepted at `now`, make the next version, and keep the due time of the details in force.
    #[must_use]
    pub fn amended(
        &self,
        head: &Head,
        id: AmendmentId,
        instruction: Instruction,
        (now, by): (UtcSecond, Actor),
    ) -> Self {
        let name = AmendmentName { version: head.version + 1, id };
        let amendment = Some(Amendment { name, previous: head.amendment });
        Self { instruction, created_at: now, created_by: by, amendment, ..self.clone() }
    }

    /// Builds the details of the bank's own amendment, which keeps the content and changes the due time. The payment's
    /// head is `head`, and `self` are its details in force.
    #[must_use]
    pub fn redated(&self, head: &Head, due: Due, now: UtcSecond) -> Self {
        let id = AmendmentId::for_redate(head.payment_id, (head.version, head.amendment), due.at);
        let details = self.amended(head, id, self.instruction.clone(), (now, Actor::redate()));
        Self { due_at: due.at, due_date: due.date, moved: due.moved, ..details }
    }

    /// The fields in which the next details differ, by their names in the API. The bank's own amendments
    /// change only the due time. A client's amendment can change the due time only through the requested
    /// time, so the due time is not among its fields.
    #[must_use]
    pub fn changes(&self, next: &Self) -> Vec<&'static str> {
        if next.created_by.is_redate() { vec![REDATED] } else { self.instruction.differences(&next.instruction) }
    }

    /// The key of the payment's head.
    #[must_use]
    pub fn key(&self) -> HeadKey {
        let slot = Slot { at: self.slot_at, payment_id: self.payment_id };
        HeadKey { account: self.instruction.account.clone(), slot }
    }
}

/// One entry of a payment's trail: a status that the payment entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailEntry {
    /// The status.
    pub status: Status,
    /// The time of the change to this status.
    pub at: UtcSecond,
    /// The actor that caused the change.
    pub by: Actor,
}

/// The part of a payment that changes. A head has at most 1 KB, so a write of a head costs one write unit, without
/// the indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The payment's id.
    pub payment_id: PaymentId,
    /// The account that pays.
    pub account: AccountId,
    /// The account that is paid.
    pub payee: AccountId,
    /// The amount.
    pub money: Money,
    /// The requested date or instant.
    pub scheduled_for: ScheduledFor,
    /// The client's reference.
    pub reference: Option<Reference>,
    /// The instant of the head's slot: the first due time.
    pub slot_at: SlotAt,
    /// The due time.
    pub due_at: UtcSecond,
    /// The business date it falls due on.
    pub due_date: BusinessDate,
    /// The payment's shard in the indexes.
    pub shard: Shard,
    /// The payment's status, with the status's data.
    pub state: State,
    /// The payment's version: 1 at first. Each transition and each amendment raises the version by one.
    pub version: u32,
    /// The amendment whose details are in force; `None` if the first details are.
    pub amendment: Option<AmendmentName>,
    /// The last amendment, until the payment is settled.
    pub amended: Option<Amended>,
    /// The time at which the payment was created, and the actor that created it.
    pub created: (UtcSecond, Actor),
    /// The payment's transitions, oldest first.
    pub moved: Vec<TrailEntry>,
    /// The number of the last dispatch attempt; `None` before the payment is pending. A redrive raises this
    /// number without a transition.
    pub dispatch_attempt: Option<u32>,
    /// The time of the last dispatch attempt after the first; `None` once the payment is settled.
    pub sent_again_at: Option<UtcSecond>,
    /// Whether the payment's settlement waits for a report.
    pub unreported: bool,
}

impl Head {
    /// Builds the head of a new payment from its first details. The same details always give the same head.
    #[must_use]
    pub fn scheduled(details: &Details) -> Self {
        let Instruction { account, payee, money, scheduled_for, reference, .. } = &details.instruction;
        Self {
            payment_id: details.payment_id,
            account: account.clone(),
            payee: payee.clone(),
            money: *money,
            scheduled_for: *scheduled_for,
            reference: reference.clone(),
            slot_at: details.slot_at,
            due_at: details.due_at,
            due_date: details.due_date,
            shard: details.shard,
            state: State::Scheduled,
            version: FIRST_VERSION,
            amendment: None,
            amended: None,
            created: (details.created_at, details.created_by.clone()),
            moved: Vec::new(),
            dispatch_attempt: None,
            sent_again_at: None,
            unreported: false,
        }
    }

    /// The key of the details in force.
    #[must_use]
    pub fn details_key(&self) -> DetailsKey {
        DetailsKey { payment_id: self.payment_id, amendment: self.amendment }
    }

    /// Builds the head of a scheduled payment that makes an amendment's details the details in force. The details may
    /// be older than the amendment: a client can complete tomorrow an amendment that failed today.
    #[must_use]
    pub fn amended(&self, name: AmendmentName, details: &Details, amended: Amended) -> Self {
        let Instruction { payee, money, scheduled_for, reference, .. } = &details.instruction;
        Self {
            payee: payee.clone(),
            money: *money,
            scheduled_for: *scheduled_for,
            reference: reference.clone(),
            due_at: details.due_at,
            due_date: details.due_date,
            version: name.version,
            amendment: Some(name),
            amended: Some(amended),
            ..self.clone()
        }
    }

    /// Whether the payment still has its first due time.
    #[must_use]
    pub fn is_due_as_at_first(&self) -> bool {
        self.due_at == self.slot_at.first_due()
    }

    /// The fields in which details differ from this head, by their names in the API. A head repeats
    /// the details in force, so a difference is damage.
    #[must_use]
    pub fn differences(&self, details: &Details) -> Vec<&'static str> {
        let Instruction { account, payee, money, .. } = &details.instruction;
        [
            ("paymentId", self.payment_id != details.payment_id),
            ("accountId", self.account != *account),
            ("payeeAccountId", self.payee != *payee),
            ("amountMinor", self.money.amount != money.amount),
            ("currency", self.money.currency != money.currency),
            ("dueAt", (self.slot_at, self.due_at) != (details.slot_at, details.due_at)),
            ("dueDate", self.due_date != details.due_date),
            ("version", self.amendment != details.amendment.map(|amendment| amendment.name)),
        ]
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
    }

    /// The head's key, which is the same in both tables.
    #[must_use]
    pub fn key(&self) -> HeadKey {
        HeadKey { account: self.account.clone(), slot: self.slot() }
    }

    /// The head's permanent place among its account's heads.
    #[must_use]
    pub fn slot(&self) -> Slot {
        Slot { at: self.slot_at, payment_id: self.payment_id }
    }

    /// The payment's place in the list of its account.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { due_at: self.due_at, payment_id: self.payment_id }
    }

    /// The payment, as settlement results, reports and events name a payment.
    #[must_use]
    pub fn due_payment(&self) -> DuePayment {
        DuePayment { account: self.account.clone(), payment_id: self.payment_id, due_at: self.due_at }
    }

    /// Returns the transition that `event` causes for this head, or a [`Refusal`] if the event does not
    /// change the head.
    pub fn transition(&self, event: &Event, at: UtcSecond, by: Actor) -> Result<Transition, Refusal> {
        Transition::new(&self.state, self.version, event, at, by)
    }

    /// The whole trail, oldest first: at most [`MAX_TRAIL_ENTRIES`].
    pub fn trail(&self) -> impl Iterator<Item = TrailEntry> + '_ {
        let (at, by) = self.created.clone();
        std::iter::once(TrailEntry { status: Status::Scheduled, at, by }).chain(self.moved.iter().cloned())
    }

    /// The time at which the payment was created.
    #[must_use]
    pub fn created_at(&self) -> UtcSecond {
        self.created.0
    }

    /// The time of the last change of status, or else of the last amendment, or else of the creation. A
    /// redrive or a report does not change this time. The API calls this time `updatedAt`.
    #[must_use]
    pub fn updated_at(&self) -> UtcSecond {
        self.last_change().0
    }

    /// The time at which the head got its version, and the actor that caused the change.
    #[must_use]
    pub fn last_change(&self) -> (UtcSecond, &Actor) {
        match (self.moved.last(), &self.amended) {
            (Some(entry), _) => (entry.at, &entry.by),
            (None, Some(amended)) => (amended.at, &amended.by),
            (None, None) => (self.created.0, &self.created.1),
        }
    }

    /// The time from which the payment can be claimed: its due time, or the time of its creation or last
    /// amendment if that is later.
    #[must_use]
    pub fn claimable_from(&self) -> UtcSecond {
        let amended_at = self.amended.as_ref().map(|amended| amended.at);
        self.due_at.max(self.created_at()).max(amended_at.unwrap_or(self.due_at))
    }

    /// The time of the payment's settlement, if it was settled.
    #[must_use]
    pub fn settled_at(&self) -> Option<UtcSecond> {
        let settled = matches!(self.state, State::Processed(_) | State::Failed(_));
        settled.then(|| self.updated_at())
    }

    /// The transaction id of a processed payment.
    #[must_use]
    pub fn transaction_id(&self) -> Option<&TransactionId> {
        if let State::Processed(id) = &self.state { Some(id) } else { None }
    }

    /// The code and the reason of a failed payment.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        if let State::Failed(failure) = &self.state { Some(failure) } else { None }
    }
}
