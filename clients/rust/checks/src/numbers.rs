//! Checks of numbers that only a bank with many, or large, payments has.

use anyhow::{Context as _, Result};
use scheduled_payments::{DueFilter, Status};
use serde_json::{Value, json};

use crate::batches::entries;
use crate::fake::{Fake, PAYMENT_ID, payment, planned, problem, with};
use crate::suite::{checks, equal};
use crate::world::{World, problem_of};

checks![sum_of_38_digits, largest_read, new_members, unknown_values];

/// The largest amount that a payment can have.
const LARGEST: i64 = 9_007_199_254_740_991;

const STATUSES: [&str; 5] = ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"];

async fn sum_of_38_digits(world: World) -> Result<()> {
    let nines = "9".repeat(38);
    let every =
        |value: Value| Value::Object(STATUSES.map(|status| (status.to_owned(), value.clone())).into_iter().collect());
    let texts = with(every(json!("0")), &json!({"PROCESSED": nines, "FAILED": format!("-{nines}")}));
    let date = world.day(0);
    let one = json!({
        "date": date, "byStatus": every(json!(0)), "total": 0, "archived": 0, "unparsed": 0, "sums": {"GBP": texts},
    });
    let fake = Fake::new([planned(200, &json!({"from": date, "to": date, "counts": [one]}))]).await?;
    let counts = fake.bank.counts(Some(date), Some(date)).await?;
    let sums = &counts[0].sums["GBP"];
    equal(sums[&Status::Processed], 99_999_999_999_999_999_999_999_999_999_999_999_999)?;
    equal(sums[&Status::Failed], -99_999_999_999_999_999_999_999_999_999_999_999_999)
}

async fn largest_read(world: World) -> Result<()> {
    let largest = with(payment(), &json!({"amountMinor": LARGEST}));
    let page = json!({"payments": [largest], "nextCursor": null});
    let fake = Fake::new([planned(200, &largest), planned(200, &page)]).await?;
    equal(fake.bank.get("acc-1", PAYMENT_ID).await?.amount_minor, LARGEST)?;
    let due = fake.bank.due(world.day(0), &DueFilter::default()).all().await?;
    equal(due.iter().map(|payment| payment.amount_minor).collect::<Vec<_>>(), [LARGEST])
}

async fn new_members(world: World) -> Result<()> {
    let unknown = problem(409, "not-thought-of-yet", &json!({"hint": "new"}));
    let rejected = with(unknown.clone(), &json!({"status": 422}));
    let results = json!([{"statusCode": 422, "accountId": "acc-1", "idempotencyKey": "k", "problem": rejected}]);
    let payment = with(payment(), &json!({"mood": "good"}));
    let planned = [planned(201, &payment), planned(409, &unknown), planned(200, &json!({"results": results}))];
    let fake = Fake::new(planned).await?;
    equal(fake.bank.create("acc-1", "k", &world.order()).await?.payment.amount_minor, 12050)?;
    equal(problem_of(fake.bank.create("acc-1", "k", &world.order()).await)?.kind(), "not-thought-of-yet")?;
    let results = fake.bank.create_account_batch("acc-1", &entries(&world, "k")).await?;
    equal(results.iter().map(|result| result.status_code).collect::<Vec<_>>(), [422])
}

async fn unknown_values(world: World) -> Result<()> {
    let at = "2090-06-15T09:00:00Z";
    let mut disputed = with(payment(), &json!({"status": "DISPUTED", "moveReason": "strike", "failureCode": "ZZ99"}));
    let trail = disputed["trail"].as_array_mut().context("no trail")?;
    trail.push(json!({"status": "DISPUTED", "at": at, "by": {"kind": "court"}}));
    let rejected = json!({"statusCode": 409, "problem": problem(409, "not-thought-of-yet", &json!({}))});
    let event = json!({"v": 1, "id": "1", "type": "payment.disputed", "at": at, "epoch": 1, "status": "DISPUTED"});
    let page = json!({"events": [event], "nextCursor": "1.2.0", "hasMore": false});
    let fake = Fake::new([planned(200, &disputed), planned(200, &json!({"results": [rejected]})), planned(200, &page)])
        .await?;
    let found = fake.bank.get("acc-1", PAYMENT_ID).await?;
    equal(
        (found.status, found.move_reason.as_deref(), &*found.trail[1].by.kind),
        (Status::Unknown, Some("strike"), "court"),
    )?;
    equal(found.failure_code.as_deref(), Some("ZZ99"))?;
    let results = fake.bank.create_account_batch("acc-1", &entries(&world, "k")).await?;
    equal(results.iter().map(|result| result.status_code).collect::<Vec<_>>(), [409])?;
    let types = fake.bank.events(None, None).await?.events.into_iter().map(|event| event.r#type);
    equal(types.collect::<Vec<_>>(), ["payment.disputed"])
}
