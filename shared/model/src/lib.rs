//! The domain of scheduled payments, pure: no AWS, no HTTP, no clock.
//!
//! A payment is put in for a future date, falls due, is sent to the bank's transaction service and
//! comes back settled. Everything a rest of the system may rely on about a payment is a type here,
//! parsed once at the edge; [`transition::decide`] is the only place that says which status may
//! follow which.
//!
//! | module | holds |
//! |---|---|
//! | [`account`] | account ids |
//! | [`actor`] | who made a transition |
//! | [`calendar`] | instants, business dates, the bank's time zone |
//! | [`counts`] | counts and sums of the payments of a date |
//! | [`money`] | amounts in minor units, ISO 4217 currencies |
//! | [`outage`] | why a call to something outside failed |
//! | [`payment`] | the request as received, the details, the head |
//! | [`payment_id`] | payment ids, idempotency keys, shards |
//! | [`sequence_number`] | places in the table's stream |
//! | [`settlement`] | settlements, transaction ids, failure reasons |
//! | [`transition`] | statuses and the one transition function |

pub mod account;
pub mod actor;
pub mod calendar;
pub mod counts;
pub mod money;
pub mod outage;
pub mod payment;
pub mod payment_id;
pub mod sequence_number;
pub mod settlement;
pub mod transition;

pub use account::AccountId;
pub use actor::Actor;
pub use calendar::{BusinessDate, BusinessZone, ScheduledFor, UtcSecond};
pub use counts::DayCounts;
pub use money::{AmountMinor, Currency, Money};
pub use outage::{Outage, OutageKind, causes};
pub use payment::{Details, Head, HeadKey, HeadSort, Instruction, JsonText, TrailEntry};
pub use payment_id::{IdempotencyKey, PaymentId, Shard, ShardCount};
pub use sequence_number::SequenceNumber;
pub use settlement::{FailureReason, Settlement, TransactionId};
pub use transition::{Decision, Event, State, Status, Transition};
