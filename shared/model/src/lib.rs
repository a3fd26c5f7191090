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
//! assert_eq!(cancelled, Err(Refusal::TooLate));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`account`] | account ids |
//! | [`actor`], [`public_actor`] | the actors of transitions, as items store them and as clients see them |
//! | [`business_days`] | calendars of payment rails, date rules, cut-offs |
//! | `calendar` | instants, business dates, times of the day, the bank's time zone |
//! | [`counts`] | counts and sums of the payments of a date |
//! | [`currency`], [`money`], `typed_amount` | ISO 4217 currencies, amounts in minor units, and as people type them |
//! | [`json_text`] | the client's own JSON |
//! | [`kinds`](mod@kinds) | enums of kinds that are stored or sent |
//! | `log` | events of the log, and the filter of an endpoint or a reader |
//! | `operation` | the requests of a recount, a redate and an undo, the schedule of redrives, the switch, the feed that is expected, the ids of operators' actions, and their second persons |
//! | [`outage`] | failed calls to other services |
//! | `payment` | ids, instructions, details and heads, limits, statuses and the transitions between them, settlements, amendments, findings |
//! | [`reference`](mod@reference) | clients' references of payments |
//! | [`sequence_number`] | places in a shard of the table's stream |
//! | [`webhook`] | endpoints of webhooks, their secrets and addresses |

#[macro_use]
mod as_text;

pub mod account;
pub mod actor;
pub mod business_days;
mod calendar;
pub mod counts;
pub mod currency;
pub mod json_text;
pub mod kinds;
mod log;
pub mod money;
mod operation;
pub mod outage;
mod payment;
pub mod public_actor;
pub mod reference;
pub mod sequence_number;
mod typed_amount;
pub mod webhook;

pub use account::AccountId;
pub use actor::{Actor, ActorKind};
pub use business_days::{
    BusinessDays, Calendar, CalendarVersion, DateMove, DateRefusal, DateRule, Due, MoveReason, Stays,
};
pub use calendar::instant::{BusinessDate, CalendarError, UtcSecond, YEARS};
pub use calendar::scheduled_for::ScheduledFor;
pub use calendar::time_of_day::{TimeOfDay, TimeOfDayError};
pub use calendar::zone::{BusinessZone, LAST_CREATE, zone_data_number, zone_data_version};
pub use counts::DayCounts;
pub use currency::Currency;
pub use json_text::JsonText;
pub use log::event::{EVENT_FORM, Epoch, IrregularEvent, Logged, VersionBefore};
pub use log::event_filter::{self, EventFields, EventFilter, PreviousFields};
pub use log::kind::EventKind;
pub use log::marks::{GapEvent, LogRestoredEvent, PaymentRestoredEvent};
pub use money::{AmountMinor, MAX_AMOUNT_MINOR, Money};
pub use operation::action::{ActionId, ActionIdError, ActionName, ActionNameError};
pub use operation::day_limit::{DayLimit, DayLimitError, DayTotal, MAX_RESERVED};
pub use operation::feed::ExpectedFeed;
pub use operation::second::{self, Consent, Person, PlanHash, Ticket};
pub use operation::switch::{Hold, MAX_HOLDS, MAX_REASON, Switch, SwitchChange};
pub use operation::undo::{self, UndoId, UndoIdError};
pub use operation::{recount, redate, redrive};
pub use outage::{Outage, OutageKind, causes};
pub use payment::amendment::{Amended, Amendment, AmendmentId, AmendmentName, DetailsKey, MAX_AMENDMENTS};
pub use payment::data::{DataHash, PaymentData, SealedData, SealedPlace, SealedPlaceError};
pub use payment::finding::{Finding, FindingClosed, ResultHash, ResultHashError, Told};
pub use payment::forms::{Details, Head, Instruction, MAX_TRAIL_ENTRIES, REDATED, TrailEntry};
pub use payment::limits::{PaymentLimits, PaymentLimitsError};
pub use payment::payment_id::{self, IdempotencyKey, PaymentId, Shard, ShardCount};
pub use payment::settlement::{self, Failure, FailureCode, Settlement, TransactionId};
pub use payment::slot::{DuePayment, HeadKey, Place, Slot, SlotAt};
pub use payment::transition::{Event, Refusal, State, Status, Statuses, Transition};
pub use public_actor::PublicActor;
pub use reference::Reference;
pub use sequence_number::SequenceNumber;
pub use typed_amount::{TypedAmount, TypedAmountError};
