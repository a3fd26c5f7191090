//! All keys, items and DynamoDB expressions, behind one public method per access pattern. A method
//! returns a [`StoreError`] if DynamoDB fails or an item cannot be read.
//!
//! | access pattern | table or index | method |
//! |---|---|---|
//! | create a payment, once for ever | `payment-history` | [`Store::put_details`] |
//! | give a created payment its head | `payments` | [`Store::put_head`] |
//! | amend a scheduled payment, after its new details were put | `payments` | [`Store::amend`] |
//! | move a scheduled payment, before its head names the details | `payment-history` | [`Store::stored_details`], [`Store::put_redated_details`] |
//! | a payment by its id | `payment-history` | [`Store::details`] |
//! | a payment's details in force, and those before | `payment-history` | [`Store::details_in_force`], [`Store::details_chain`] |
//! | a payment's current state | `payments`, then `payment-history` | [`Store::head`] |
//! | an account's payments by due time | both tables, and their `moved` | [`Store::account_page`] |
//! | the data of a page of payments | `payment-history` | [`Store::data_of`] |
//! | due payments of a status, by shard | `payments`/`due` | [`Store::due_page`], [`Store::due_count`] |
//! | all payments of a date and status, by shard | both tables' `due` | [`Store::due_page_of_both`] |
//! | the payment of a transaction id | `payment-history`/`transaction` | [`Store::payments_of_transaction`] |
//! | many current states, many details | `payments`, `payment-history` | [`Store::hot_heads`], [`Store::details_of`] |
//! | many current states, with attributes that this version does not know | `payments` | [`Store::stored_head`], [`Store::recent_head`], [`Store::stored_heads`] |
//! | one claim or cancel | `payments` | [`Store::transition`], [`Store::cancel_payment`] |
//! | one settlement | `payment-history`, then `payments` | [`Store::decide_settlement`], [`Store::follow_settlement`] |
//! | many settlements | `payment-history` | [`Store::settled_heads`] |
//! | one redrive | `payments` | [`Store::redrive`] |
//! | settled payments in no report, by shard | `payments`/`unreported` | [`Store::unreported_page`] |
//! | mark a payment as reported | `payments` | [`Store::mark_reported`] |
//! | the report's last run | `payments` | [`Store::last_report_run`], [`Store::commit_report_run`], [`Store::finish_report_run`] |
//! | archive a past payment | `payment-history`, then `payments` | [`Store::put_archived_head`], [`Store::remove_head`] |
//! | the counters of dates | `payments` | [`Store::counters`] |
//! | the last counted record of a stream shard | `payments` | [`Store::checkpoint`] |
//! | add records of the stream to the counters, and their events to the log | `payments`, `payments-log` | [`Store::commit_counts`] |
//! | the log's head | `payments-log` | [`Store::log_head`] |
//! | the log's events after a place | `payments-log` | [`Store::log_page`] |
//! | how far a consumer has read the log | `payments-log` | [`Store::log_consumer`], [`Store::move_log_consumer`] |
//! | the webhook endpoints | `payment-history` | [`Store::webhook_endpoints`], [`Store::webhook_endpoint`] |
//! | create, change, delete an endpoint | `payment-history`, `payments-log` | [`Store::create_webhook_endpoint`], [`Store::change_webhook_endpoint`], [`Store::delete_webhook_endpoint`] |
//! | rotate an endpoint's secret | `payment-history` | [`Store::rotate_webhook_secret`] |
//! | the state of endpoints' deliveries | `payments-log` | [`Store::webhook_states`], [`Store::webhook_state`], [`Store::begin_webhook`] |
//! | deliver to an endpoint, one run at a time | `payments-log` | [`Store::take_webhook`], [`Store::commit_webhook`], [`Store::release_webhook`], [`Store::finish_webhook_test`] |
//! | replay, skip, test an endpoint | `payments-log` | [`Store::replay_webhook`], [`Store::skip_webhook_event`], [`Store::ask_webhook_test`] |
//! | the audit trail of the console | `payment-history` | [`Store::put_audit_intent`], [`Store::put_audit_outcome`], [`Store::audit_entry`], [`Store::audit_page`] |
//! | recount a date | both tables' `due` | [`Store::recount_next`] |
//! | evidence of drift, by date | `payments` | [`Store::evidence`], [`Store::keep_evidence`], [`Store::drop_evidence`] |
//! | repair a date's counters | `payments` | [`Store::repair_counters`] |
//! | after a restore: a head as its events say, the counters, the report's last run | `payments` | [`Store::has_stream`], [`Store::put_restored_head`], [`Store::correct_counters`], [`Store::restore_report_run`] |
//! | after a restore: what was counted where | `payments` | [`Store::checkpoints`], [`Store::drop_checkpoint`] |
//! | after a restore: payments that ended since an instant, by shard | `payment-history`/`due` | [`Store::ended_page`] |
//! | after a restore: the next date with payments, by shard | both tables' `due` | [`Store::next_due_date`] |
//! | after a restore: all details, and only if the operator asks | `payment-history` | [`Store::all_details_page`] |

mod account;
mod archive;
mod attributes;
mod audit;
mod audit_name;
mod bounded;
mod cancel;
mod checkpoint;
mod conditional;
mod counted;
mod counters;
mod data;
mod details_item;
mod due;
mod endpoint;
mod error;
mod frame;
mod insert;
mod item;
pub mod key;
mod kind;
mod log;
mod lookup;
mod merge;
mod recount;
mod redate;
mod repair;
mod report_job;
mod restored;
pub mod schema;
mod settlement;
mod size;
mod transaction;
mod transition;
mod unreported;

use aws_sdk_dynamodb::Client;

pub use account::{AccountFilter, AccountPage, AccountQuery, ListOrder};
pub use archive::{Archived, EXPIRES_AT, KEPT_UNTIL, Removed, StoredHead};
pub use attributes::Item;
pub use audit::{AuditEntry, AuditIntent, AuditOutcome, AuditPage};
pub use audit_name::{ActionName, AuditMonth, AuditMonthError};
pub use bounded::CALL_TIMEOUT;
pub use cancel::Cancelled;
pub use checkpoint::{Committed, CountsCommit, MAX_DATES_PER_COMMIT, MAX_SUMS_PER_DATE};
pub use counted::{Counted, Uncountable, counted};
pub use counters::DateCounters;
pub use data::compress;
pub use due::{DuePage, DueRange, DueRow, DueUntil};
pub use endpoint::{CreateEndpoint, EndpointChoice, EndpointsCreated, MAX_ENDPOINTS, WebhookEndpoint};
pub use error::StoreError;
pub use insert::{PutDetails, PutHead, details_excess};
pub use key::{DueSort, UnreportedSort};
pub use kind::ItemKind;
pub use log::{
    BlockingEvent, Delivery, DeliveryEnd, DeliveryError, DisabledBy, LOG_KEPT_FOR, LogEntry, LogHead, LogPage,
    LogPosition, LogPositionError, LogRead, LogStage, MAX_SEGMENT_BYTES, Missed, MissedEvents, Progress, REMEMBERED,
    SkippedEvent, WebhookCommit, WebhookState, first_lease, logged, segment_of,
};
pub use lookup::MAX_BATCH_GET;
pub use recount::{DueRecount, Recounted};
pub use redate::StoredDetails;
pub use repair::{Evidence, Repaired, StoredEvidence};
pub use report_job::{ReportCommit, ReportFile, ReportRun};
pub use restored::{DetailsPage, EndedPage, PageEnd};
pub use settlement::Decided;
pub use size::{MAX_DETAILS_BYTES, OWN_DETAILS_BYTES, item_bytes};
pub use transition::Moved;
pub use unreported::{Marked, UnreportedEnd, UnreportedPage, UnreportedRow, expiry_of_reported};

/// The names of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    /// The hot table.
    pub payments: String,
    /// The long-term table.
    pub history: String,
    /// The log's table.
    pub log: String,
}

/// The tables, through one client.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    tables: TableNames,
}

impl Store {
    /// Creates a store of existing tables.
    pub fn new(client: Client, tables: TableNames) -> Self {
        Self { client, tables }
    }

    /// The names of the tables, for log lines about their items.
    pub fn tables(&self) -> &TableNames {
        &self.tables
    }
}
