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
//! | an account's payments by due time | both tables, and their `moved` | [`Store::account_page`], [`Store::account_list`] |
//! | the data of a page of payments | `payment-history` | [`Store::data_of`] |
//! | due payments of a status, by shard | `payments`/`due` | [`Store::due_page`], [`Store::due_count`] |
//! | all payments of a date and status, by shard | both tables' `due` | [`Store::due_page_of_both`] |
//! | the payment of a transaction id | `payment-history`/`transaction` | [`Store::payments_of_transaction`] |
//! | many current states, many details | `payments`, `payment-history` | [`Store::hot_heads`], [`Store::details_of`] |
//! | many current states, with attributes that this version does not know | `payments` | [`Store::stored_head`], [`Store::recent_head`], [`Store::stored_heads`] |
//! | one claim or cancel | `payments` | [`Store::transition`], [`Store::cancel_payment`] |
//! | one settlement | `payment-history`, then `payments` | [`Store::decide_settlement`], [`Store::follow_settlement`] |
//! | many settlements | `payment-history` | [`Store::settled_heads`] |
//! | one redrive, by its schedule or an operator | `payments` | [`Store::redrive`], [`Store::send_again`] |
//! | results that contradict their payments | `payment-history` | [`Store::put_finding`], [`Store::open_findings`], [`Store::findings_of`], [`Store::finding`], [`Store::close_finding`], [`Store::copy_finding`] |
//! | settled payments in no report, by shard | `payments`/`unreported` | [`Store::unreported_page`] |
//! | mark a payment as reported | `payments` | [`Store::mark_reported`] |
//! | the report's last run | `payments` | [`Store::last_report_run`], [`Store::commit_report_run`], [`Store::finish_report_run`] |
//! | archive a past payment | `payment-history`, then `payments` | [`Store::put_archived_head`], [`Store::remove_head`] |
//! | the counters of dates | `payments` | [`Store::counters`] |
//! | the last counted record of a stream shard | `payments` | [`Store::checkpoint`] |
//! | add records of the stream to the counters, and their events to the log | `payments`, `payments-log` | [`Store::commit_counts`] |
//! | the log's head | `payments-log` | [`Store::log_head`] |
//! | the log's events after a place | `payments-log` | [`Store::log_page`] |
//! | the log's place at a time | `payments-log` | [`Store::log_place_at`] |
//! | how far a consumer has read the log | `payments-log` | [`Store::log_consumer`], [`Store::move_log_consumer`] |
//! | the webhook endpoints | `payment-history` | [`Store::webhook_endpoints`], [`Store::webhook_endpoint`] |
//! | create, change, delete an endpoint | `payment-history`, `payments-log` | [`Store::create_webhook_endpoint`], [`Store::change_webhook_endpoint`], [`Store::delete_webhook_endpoint`] |
//! | rotate an endpoint's secret | `payment-history` | [`Store::rotate_webhook_secret`] |
//! | the state of endpoints' deliveries | `payments-log` | [`Store::webhook_states`], [`Store::webhook_state`], [`Store::begin_webhook`] |
//! | deliver to an endpoint, one run at a time | `payments-log` | [`Store::take_webhook`], [`Store::commit_webhook`], [`Store::release_webhook`], [`Store::finish_webhook_test`] |
//! | replay, skip, test an endpoint | `payments-log` | [`Store::replay_webhook`], [`Store::skip_webhook_event`], [`Store::ask_webhook_test`] |
//! | enable an endpoint | `payment-history`, `payments-log` | [`Store::enable_webhook`] |
//! | the audit trail of the console | `payment-history` | [`Store::put_audit_intent`], [`Store::put_audit_outcome`], [`Store::audit_entry`], [`Store::audit_page`], [`Store::audit_since`] |
//! | the decision of a second person | `payment-history` | [`Store::put_approval`], [`Store::approval`] |
//! | the last run of each scheduled job | `payment-history` | [`Store::put_last_run`], [`Store::last_runs`] |
//! | the figures of a day | `payment-history` | [`Store::add_sample`], [`Store::add_failures`], [`Store::figures`] |
//! | the switch that stops claims and sends | `payment-history` | [`Store::switch`], [`Store::change_switch`] |
//! | the claims of a date within its limit | `payments` | [`Store::day_claims`], [`Store::reserve_claims`], [`Store::give_back_claims`], [`Store::correct_claims`], [`Store::note_day_held`], [`Store::days_held`] |
//! | the release of a date that its limit holds | `payment-history` | [`Store::day_release`], [`Store::release_day`] |
//! | recount a date | both tables' `due` | [`Store::recount_next`] |
//! | evidence of drift, by date | `payments` | [`Store::evidence`], [`Store::keep_evidence`], [`Store::drop_evidence`] |
//! | an undo, its plans and its runs | `payment-history` | [`Store::undo`], [`Store::open_undos`], [`Store::change_undo`] |
//! | repair a date's counters | `payments` | [`Store::repair_counters`] |
//! | after a restore: a head as its events say, the counters, the report's last run | `payments` | [`Store::has_stream`], [`Store::put_restored_head`], [`Store::correct_counters`], [`Store::restore_report_run`] |
//! | after a restore: what was counted where | `payments` | [`Store::checkpoints`], [`Store::drop_checkpoint`] |
//! | after a restore: payments that ended since an instant, by shard | `payment-history`/`due` | [`Store::ended_page`] |
//! | after a restore: the next date with payments, by shard | both tables' `due` | [`Store::next_due_date`] |
//! | after a restore: all details, and only if the operator asks | `payment-history` | [`Store::all_details_page`] |

mod audit;
mod conditional;
mod counters;
mod error;
mod frame;
mod index;
mod item;
pub mod key;
mod kind;
mod log;
mod payment;
mod read;
mod report;
mod restore;
mod runs;
pub mod schema;
mod size;
mod store;
mod webhook;

pub use audit::approval::Approval;
pub use audit::asked::{Asked, NotApproved, Standing, WAITS};
pub use audit::trail::{AuditEntry, AuditIntent, AuditOutcome, AuditPage, First};
pub use counters::checkpoint::{Committed, CountsCommit, MAX_DATES_PER_COMMIT, MAX_SUMS_PER_DATE};
pub use counters::claims::DayClaims;
pub use counters::counted::{Counted, Uncountable, counted};
pub use counters::date_counters::DateCounters;
pub use counters::recount::{DueRecount, Recounted};
pub use counters::repair::{Evidence, Repaired, StoredEvidence};
pub use error::StoreError;
pub use index::account::{AccountFilter, AccountPage, AccountQuery, ListOrder};
pub use index::archived::{ArchivedPage, ArchivedPlace};
pub use index::due::{DuePage, DueRange, DueRow, DueUntil};
pub use item::Item;
pub use key::audit::{AuditMonth, AuditMonthError};
pub use key::due::DueSort;
pub use key::unreported::UnreportedSort;
pub use kind::ItemKind;
pub use log::consumer::first_lease;
pub use log::epoch::LogStage;
pub use log::head::{LOG_KEPT_FOR, LogHead, Missed};
pub use log::image::logged;
pub use log::position::{LogPosition, LogPositionError};
pub use log::read::{LogEntry, LogPage, LogRead};
pub use log::search::CLOCKS_DIFFER;
pub use log::segment::{MAX_SEGMENT_BYTES, segment_of};
pub use payment::archive::{Archived, Removed, StoredHead};
pub use payment::cancel::Cancelled;
pub use payment::data::compress;
pub use payment::finding::{ClosedFinding, FindingName, OpenFindings};
pub use payment::insert::{PutDetails, PutHead, details_excess};
pub use payment::record::{LEAST_CLEARED, cleared};
pub use payment::redate::StoredDetails;
pub use payment::settlement::Decided;
pub use payment::transition::{Damaged, Moved};
pub use read::{CALL_TIMEOUT, MAX_BATCH_GET};
pub use report::job::{ReportCommit, ReportFile, ReportRun};
pub use report::unreported::{Marked, UnreportedEnd, UnreportedPage, UnreportedRow, expiry_of_reported};
pub use restore::pages::{DetailsPage, EndedPage, PageEnd};
pub use runs::cleared::{CHANGEABLE_DAYS, Cleared};
pub use runs::figures::{DayFigures, MAX_CODES, OTHER, SAMPLE_EVERY};
pub use runs::last::{Job, LastRun, MAX_FAILED_BYTES, MAX_OUTCOME_BYTES};
pub use runs::release::DayRelease;
pub use runs::undo::{Undo, UndoPlan, UndoRun, UndoTotals};
pub use schema::{EXPIRES_AT, KEPT_UNTIL};
pub use size::{MAX_DETAILS_BYTES, OWN_DETAILS_BYTES, item_bytes};
pub use store::{Store, TableNames};
pub use webhook::endpoint::{CreateEndpoint, EndpointChoice, EndpointsCreated, MAX_ENDPOINTS, WebhookEndpoint};
pub use webhook::operate::EnableWebhook;
pub use webhook::state::{
    BlockingEvent, Delivery, DeliveryEnd, DeliveryError, DisabledBy, MissedEvents, Progress, REMEMBERED, SkippedEvent,
    WebhookCommit, WebhookState,
};
