//! Checks of lists and counts at the running bank.

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use scheduled_payments::{AccountFilter, Data, DueFilter, Order, Payment, PaymentOrder, Status};
use serde_json::json;

use crate::fake::{Fake, PAYMENT_ID, payment, planned};
use crate::suite::{checks, equal};
use crate::world::{World, json as data, problem_of, without_data};

checks![
    pages_ascending,
    pages_descending,
    date_range,
    several_statuses,
    payee_filter,
    reference_filter,
    find_by_key,
    find_by_unknown_key,
    due_by_date,
    find_by_transaction,
    counts,
    events,
    unreadable,
];

/// Returns five payments of an account, each due a day later than the one before.
async fn five(world: &World, account: &str) -> Result<Vec<Payment>> {
    let mut payments = Vec::new();
    for n in 0..5 {
        let order = PaymentOrder { scheduled_for: world.day(10 + n).into(), ..world.order() };
        payments.push(world.bank.create(account, &format!("five-{n}"), &order).await?.payment);
    }
    Ok(payments)
}

async fn all(world: &World, account: &str, filter: AccountFilter) -> Result<Vec<Payment>> {
    Ok(world.bank.list(account, &filter)?.all().await?)
}

async fn pages_ascending(world: World) -> Result<()> {
    let filter = AccountFilter { page_size: 2, ..AccountFilter::default() };
    equal(all(&world, "rs-pages", filter.clone()).await?, [])?;
    let created = five(&world, "rs-pages").await?;
    equal(all(&world, "rs-pages", filter.clone()).await?, &*created)?;
    // The list is a stream, too.
    let streamed: Vec<_> = world.bank.list("rs-pages", &filter)?.try_collect().await?;
    equal(streamed, created)
}

async fn pages_descending(world: World) -> Result<()> {
    let mut created = five(&world, "rs-back").await?;
    created.reverse();
    let filter = AccountFilter { page_size: 2, order: Order::Descending, ..AccountFilter::default() };
    equal(all(&world, "rs-back", filter).await?, created)
}

async fn date_range(world: World) -> Result<()> {
    let created = five(&world, "rs-range").await?;
    let (from, to) = (Some(world.day(11)), Some(world.day(13)));
    equal(all(&world, "rs-range", AccountFilter { from, to, ..AccountFilter::default() }).await?, &created[1..4])
}

async fn several_statuses(world: World) -> Result<()> {
    let mut created = five(&world, "rs-status").await?;
    let cancelled = world.bank.cancel("rs-status", &created[1].payment_id).await?;
    created[1] = cancelled.clone();
    let of = |status: [Status; 2]| AccountFilter { status: status.into(), ..AccountFilter::default() };
    equal(all(&world, "rs-status", of([Status::Cancelled, Status::Scheduled])).await?, created)?;
    equal(all(&world, "rs-status", of([Status::Cancelled, Status::Failed])).await?, [cancelled])
}

async fn payee_filter(world: World) -> Result<()> {
    five(&world, "rs-payee").await?;
    let order = PaymentOrder { payee_account_id: "acc-9".to_owned(), ..world.order_with("[1]")? };
    let other = world.bank.create("rs-payee", "other-1", &order).await?.payment;
    let filter = AccountFilter { payee: Some("acc-9".to_owned()), with_data: true, ..AccountFilter::default() };
    let found = all(&world, "rs-payee", filter).await?;
    let found: Vec<_> = found.into_iter().map(|payment| (payment.payment_id, payment.data)).collect();
    equal(found, [(other.payment_id, Some(data("[1]")?))])
}

async fn reference_filter(world: World) -> Result<()> {
    five(&world, "rs-reference").await?;
    let reference = Some("INV 2026/117+(a)".to_owned());
    let order = PaymentOrder { reference: reference.clone(), ..world.order() };
    let other = world.bank.create("rs-reference", "other-1", &order).await?.payment;
    equal(&other.reference, &reference)?;
    equal(all(&world, "rs-reference", AccountFilter { reference, ..AccountFilter::default() }).await?, [other])
}

async fn find_by_key(world: World) -> Result<()> {
    let key = "a+key&with=/#?%41";
    let created = world.bank.create("rs-find", key, &world.order_with(r#"{"a":1}"#)?).await?.payment;
    let found = world.bank.find_by_key_with_data("rs-find", key).await?.context("nothing is found")?;
    equal(found.data.as_ref().map(Data::get), Some(r#"{"a":1}"#))?;
    equal(&without_data(found), &created)?;
    equal(world.bank.find_by_key("rs-find", key).await?, Some(created))
}

async fn find_by_unknown_key(world: World) -> Result<()> {
    equal(world.bank.find_by_key("rs-find", "unknown-1").await?, None)
}

async fn due_by_date(world: World) -> Result<()> {
    let settled = world.bank.find_by_key("acc-1", &world.settled_key).await?.context("nothing is found")?;
    let filter = DueFilter { status: vec![Status::Processed, Status::Failed], page_size: 1, ..DueFilter::default() };
    let found = world.bank.due(world.today, &filter).all().await?;
    let found: Vec<_> = found.iter().map(|due| (&due.payment_id, due.amount_minor, due.settled_at)).collect();
    equal(found, [(&settled.payment_id, 350, settled.settled_at)])?;
    equal(world.bank.due(world.day(700), &DueFilter::default()).all().await?, [])
}

async fn find_by_transaction(world: World) -> Result<()> {
    let found = world.bank.find_by_transaction(&world.transaction).await?;
    let ends: Vec<_> = found.iter().map(|payment| (payment.transaction_id.as_ref(), payment.status)).collect();
    equal(ends, [(Some(&world.transaction), Status::Processed)])?;
    let settled = world.bank.find_by_key("acc-1", &world.settled_key).await?;
    equal(found.into_iter().next(), settled)?;
    equal(world.bank.find_by_transaction("TX with spaces & more").await?, [])
}

async fn counts(world: World) -> Result<()> {
    let counts = world.bank.counts(Some(world.today), Some(world.day(1))).await?;
    let [today, tomorrow] = counts.try_into().map_err(|counts| anyhow::anyhow!("{counts:?}"))?;
    equal((today.date, tomorrow.date), (world.today, world.day(1)))?;
    equal((today.total, today.by_status[&Status::Processed], today.by_status[&Status::Scheduled]), (1, 1, 0))?;
    equal(today.sums["GBP"][&Status::Processed], 350)?;
    equal(tomorrow.total, 0)?;
    ensure!(tomorrow.sums.is_empty());
    Ok(())
}

async fn events(world: World) -> Result<()> {
    let mut found = Vec::new();
    let mut page = world.bank.events(None, Some(1)).await?;
    while page.has_more {
        found.append(&mut page.events);
        page = world.bank.events(Some(&page.next_cursor), None).await?;
    }
    found.append(&mut page.events);
    let settled = found.iter().find(|event| event.transaction_id.as_ref() == Some(&world.transaction));
    let settled = settled.context("the settlement is not in the log")?;
    equal((settled.r#type.as_str(), settled.version), ("payment.processed", Some(3)))?;
    equal(
        (settled.previous_status, settled.status, settled.amount_minor),
        (Some(Status::Pending), Some(Status::Processed), Some(350)),
    )?;
    let problem = problem_of(world.bank.events(Some("9.1.0"), None).await)?;
    let oldest = format!("{}.1.0", settled.epoch);
    equal(
        (problem.status, problem.kind(), problem.oldest_cursor.as_deref()),
        (410, "cursor-gone", Some(oldest.as_str())),
    )
}

async fn unreadable(_: World) -> Result<()> {
    let gone = json!({"count": 2, "paymentIds": [PAYMENT_ID]});
    let first = planned(200, &json!({"payments": [], "nextCursor": "abc", "unreadable": gone}));
    let last = planned(200, &json!({"payments": [payment()], "nextCursor": null}));
    let fake = Fake::new([first, last]).await?;
    let filter = AccountFilter { status: vec![Status::Scheduled], ..AccountFilter::default() };
    let mut pages = fake.bank.list("acc-1", &filter)?;
    equal(pages.all().await?.len(), 1)?;
    equal((pages.unreadable(), pages.unreadable_ids()), (2, &[PAYMENT_ID.to_owned()][..]))?;
    let seen = fake.seen();
    ensure!(!seen[0].path.contains("cursor=") && seen[1].path.contains("cursor=abc"), "{seen:?}");
    Ok(())
}
