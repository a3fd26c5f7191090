//! The domain of scheduled payments, pure: no AWS, no HTTP, no clock.
//!
//! A payment is created for a future date, falls due, is dispatched to the bank's transaction
//! service and is settled. The rest of the system relies on the types here, which are parsed once
//! at the edge. [`Transition::new`] alone decides which status may follow which.
//!
//! ```
//! use payments_model::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A client's instruction is accepted.
//! let account: AccountId = "acc-1".parse()?;
//! let payment_id = PaymentId::derive(&account, &"rent-2026-12".parse()?);
//! let instruction = Instruction {
//!     account,
//!     payee: "landlord-7".parse()?,
//!     money: Money { amount: "125000".parse()?, currency: "GBP".parse()? },
//!     scheduled_for: "2026-12-01".parse()?,
//!     date_rule: None,
//!     reference: None,
//!     data: None,
//! };
//! let (zone, shards) = ("Europe/London".parse()?, "10".parse()?);
//! let now = "2026-11-20T08:00:00Z".parse()?;
//! let details = Details::accept(payment_id, instruction, zone, shards, now, Actor::client("feed"));
//! let head = Head::scheduled(&details);
//! assert_eq!(details.due_at.to_string(), "2026-12-01T00:00:00Z");
//!
//! // The sweeper claims the payment once it is due.
//! let claim = head.transition(&Event::Sweep, details.due_at, Actor::sweep())?;
//! assert_eq!((claim.from(), claim.to()), (Status::Scheduled, &State::Pending));
//!
//! // The transaction service settles it.
//! let (settlement, version) = (Settlement::Processed("TX-1".parse()?), claim.version() + 1);
//! let settled = Transition::new(claim.to(), version, &Event::Settle(settlement), now, Actor::transaction_service())?;
//! assert_eq!(settled.to().status(), Status::Processed);
//!
//! // It can no longer be cancelled.
//! let cancelled = Transition::new(settled.to(), version + 1, &Event::Cancel, now, Actor::client("feed"));
//! assert_eq!(cancelled, Err(Decision::TooLate));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`account`] | account ids |
//! | [`action`] | the ids of operators' actions |
//! | [`actor`] | the actors of transitions |
//! | [`amendment`] | amendments, and which details are in force |
//! | [`business_days`] | calendars of payment rails, date rules, cut-offs |
//! | [`calendar`] | instants, business dates, the bank's time zone |
//! | [`counts`] | counts and sums of the payments of a date |
//! | [`currency`] | ISO 4217 currencies |
//! | [`event_filter`] | which events an endpoint or a reader wants |
//! | [`json_text`] | the client's own JSON |
//! | [`kinds`](mod@kinds) | enums of kinds that are stored or sent |
//! | [`log_event`] | events of the log |
//! | [`money`] | amounts in minor units |
//! | [`outage`] | failed calls to other services |
//! | [`payment`] | instructions, details and heads |
//! | [`payment_id`] | payment ids, idempotency keys, shards |
//! | [`public_actor`] | the actors as clients see them |
//! | [`recount`] | what a recount is asked for |
//! | [`redate`] | what a redate is asked for |
//! | [`reference`](mod@reference) | clients' references of payments |
//! | [`sequence_number`] | places in a shard of the table's stream |
//! | [`settlement`] | settlements, transaction ids, failures with their codes |
//! | [`slot`] | the keys of heads |
//! | [`transition`] | statuses and the transitions between them |
//! | [`webhook`] | endpoints of webhooks, their secrets and addresses |

/// Implements `as_str` and `Display` for types that hold a text.
macro_rules! as_text {
    ($($text:ty),*) => {$(
        impl $text {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $text {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

pub mod account;
pub mod action;
pub mod actor;
pub mod amendment;
pub mod business_days;
pub mod calendar;
pub mod counts;
pub mod currency;
pub mod event_filter;
pub mod json_text;
pub mod kinds;
pub mod log_event;
pub mod money;
pub mod outage;
pub mod payment;
pub mod payment_id;
pub mod public_actor;
pub mod recount;
pub mod redate;
pub mod reference;
pub mod sequence_number;
pub mod settlement;
pub mod slot;
pub mod transition;
pub mod webhook;

pub use account::AccountId;
pub use action::{ActionId, ActionIdError};
pub use actor::{Actor, ActorKind};
pub use amendment::{Amended, Amendment, AmendmentId, AmendmentName, DetailsKey, MAX_AMENDMENTS};
pub use business_days::{
    BusinessDays, Calendar, CalendarVersion, DateMove, DateRefusal, DateRule, Due, MoveReason, Stays,
};
pub use calendar::{BusinessDate, BusinessZone, ScheduledFor, UtcSecond, zone_data_number, zone_data_version};
pub use counts::DayCounts;
pub use currency::Currency;
pub use event_filter::{EventFields, EventFilter, PreviousFields};
pub use json_text::JsonText;
pub use log_event::{
    EVENT_FORM, Epoch, EventKind, GapEvent, IrregularEvent, LogRestoredEvent, Logged, PaymentRestoredEvent,
    VersionBefore,
};
pub use money::{AmountMinor, MAX_AMOUNT_MINOR, Money};
pub use outage::{Outage, OutageKind, causes};
pub use payment::{Details, Head, Instruction, REDATED, TrailEntry};
pub use payment_id::{IdempotencyKey, PaymentId, Shard, ShardCount};
pub use public_actor::PublicActor;
pub use reference::Reference;
pub use sequence_number::SequenceNumber;
pub use settlement::{Failure, FailureCode, Settlement, TransactionId};
pub use slot::{DuePayment, HeadKey, Place, Slot, SlotAt};
pub use transition::{Decision, Event, State, Status, Statuses, Transition};
