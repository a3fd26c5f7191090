//! The event files of the HTTP functions: what each finds, and when it arrives.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_http::routes;

use crate::World;
use crate::given::{Given, HORIZON_DAYS, events, function_of, given, prepare};

/// When the events arrive.
pub const NOW: &str = "2026-11-20T09:00:00Z";

/// When what they find happened.
const HALF_AN_HOUR_AGO: &str = "2026-11-20T08:30:00Z";

/// What each event finds. An event that is not named here finds nothing and must not read.
pub const GIVEN: [(Given, &[&str]); 14] = [
    (
        Given::Nothing,
        &[
            "ingest/amend-unknown",
            "ingest/batch-entries-refused",
            "ingest/batch-mixed",
            "ingest/cancel-unknown",
            "ingest/create-amount-beyond-doubles",
            "ingest/create-currency-unit",
            "ingest/create-currency-unknown",
            "ingest/create-currency-withdrawn",
            "ingest/create-date-beyond-horizon",
            "ingest/create-data-too-large",
            "ingest/create-date-passed",
            "ingest/create-date-rule-without-calendars",
            "query-account/get-unknown",
            "query-account/list-account-unknown",
            "query-account/versions-unknown",
            "query-due/list-date-over",
            "query-due/transaction-id-with-special-characters",
            "webhooks/delete-unknown",
            "webhooks/get-unknown",
            "webhooks/list",
            "webhooks/put",
            "webhooks/put-cursor-gone",
            "webhooks/replay-unknown",
            "webhooks/rotate-unknown",
            "webhooks/secret-unknown",
            "webhooks/skip-unknown",
            "webhooks/test-unknown",
        ],
    ),
    (
        Given::OnePayment,
        &[
            "ingest/amend",
            "ingest/amend-data-too-large",
            "ingest/amend-date",
            "ingest/amend-date-passed",
            "ingest/amend-payee",
            "ingest/batch-same-key",
            "ingest/cancel",
            "ingest/cancel-empty-object",
            "ingest/cancel-other-account",
            "ingest/create-again",
            "ingest/create-key-reused",
            "ingest/create-reference-other",
            "query-account/get",
            "query-account/get-other-account",
            "query-account/get-token-of-account",
            "query-account/versions-token-of-account",
        ],
    ),
    (
        Given::Amended,
        &[
            "ingest/amend-again",
            "ingest/amend-key-reused",
            "ingest/amend-version-changed",
            "query-account/get-amended",
            "query-account/versions",
            "query-account/versions-data",
        ],
    ),
    (
        Given::TwoPayments,
        &[
            "ingest/batch-again",
            "query-account/list",
            "query-account/list-data",
            "query-account/list-page-1",
            "query-account/list-page-2",
            "query-account/list-cursor-alone",
        ],
    ),
    (
        Given::OneOfTwoCancelled,
        &[
            "ingest/cancel-again",
            "ingest/create-again-after-cancel",
            "query-account/get-cancelled",
            "query-account/list-reference",
            "query-account/list-status",
        ],
    ),
    (
        Given::Endpoint,
        &[
            "console/endpoints",
            "webhooks/delete",
            "webhooks/get",
            "webhooks/list-of-one",
            "webhooks/put-again",
            "webhooks/put-changed",
            "webhooks/replay",
            "webhooks/replay-ahead",
            "webhooks/replay-gone",
            "webhooks/rotate",
            "webhooks/rotate-twice",
            "webhooks/secret",
            "webhooks/skip",
            "webhooks/skip-another",
            "webhooks/test",
        ],
    ),
    (Given::Endpoints, &["webhooks/put-too-many"]),
    (
        Given::Calendars,
        &[
            "ingest/batch-date-rules",
            "ingest/create-date-beyond-calendar",
            "ingest/create-date-rule",
            "ingest/create-date-rule-default",
            "ingest/create-date-rule-refuse",
            "query-account/calendar",
            "query-account/calendar-unknown",
            "query-account/calendars",
            "query-account/calendars-token-of-account",
        ],
    ),
    (Given::MovedPayment, &["ingest/create-date-rule-again", "ingest/create-date-rule-other"]),
    (Given::Pending, &["ingest/amend-pending", "ingest/cancel-pending"]),
    (
        Given::Processed,
        &[
            "ingest/cancel-processed",
            "query-account/get-processed",
            "query-due/transaction",
            "query-due/transaction-unknown",
        ],
    ),
    (Given::Failed, &["query-account/get-failed"]),
    (
        Given::ADayCounted,
        &[
            "query-due/counts",
            "query-due/events",
            "query-due/events-cursor-gone",
            "query-due/events-inside-segment",
            "query-due/events-now",
            "query-due/events-oldest",
            "query-due/events-page",
        ],
    ),
    (
        Given::ADay,
        &[
            "console/ahead",
            "console/bank",
            "console/day",
            "console/find-nothing",
            "console/list",
            "console/payment-unknown",
            "console/start-sweep",
            "console/waiting",
            "query-due/list",
            "query-due/list-cursor-alone",
            "query-due/list-date-empty",
            "query-due/list-page-1",
            "query-due/list-page-2",
            "query-due/list-shard",
            "query-due/list-status",
            "query-due/list-status-repeated",
            "query-due/list-status-with-comma",
        ],
    ),
];

/// A world as an event finds it, what that is, and whether [`GIVEN`] says so.
pub async fn world_of(name: &str) -> Result<(World, Given, bool)> {
    let (given, is_stated) = given(&GIVEN, name);
    let world = World::with(|environment| {
        environment.horizon_days = HORIZON_DAYS;
        if [Given::Calendars, Given::MovedPayment].contains(&given) {
            environment.calendars = "EUR=T2,GBP=GB,USD=FED".to_owned();
            environment.cut_offs = "T2=16:00,FED=17:30".to_owned();
        }
    });
    let world = world.await?;
    let prepared = prepare(&world, given, HALF_AN_HOUR_AGO).await;
    prepared.with_context(|| format!("preparing {given:?} for {name}"))?;
    world.set_clock(NOW)?;
    drop(world.recorder.take_operations());
    Ok((world, given, is_stated))
}

/// The names of the events of functions that answer HTTP.
pub fn http_events() -> Result<BTreeSet<String>> {
    let is_http = |name: &String| routes::all().any(|spec| spec.function.name() == function_of(name));
    Ok(events()?.into_iter().filter(is_http).collect())
}
