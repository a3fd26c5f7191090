//! Creating payments: one a request, a hundred a request, and only the two PutItems of each.

use anyhow::{Result, ensure};
use payments_load::orders;
use payments_load::settings::MAX_BATCH;
use payments_model::Head;

use crate::calls::{AT_ONCE, Work, send_groups};
use crate::fixture::Fixture;

/// The batches in flight: `ingest` works on sixteen payments of each at a time.
const BATCHES_AT_ONCE: usize = AT_ONCE / 16;

pub(crate) fn single(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let requests = fixture.orders(size).iter().map(orders::Order::request).collect();
    fixture.answer(requests, AT_ONCE, 201)
}

pub(crate) fn in_batches(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let requests = fixture.orders(size).chunks(usize::try_from(MAX_BATCH)?).map(orders::batch).collect();
    fixture.answer(requests, BATCHES_AT_ONCE, 200)
}

pub(crate) async fn bare_calls(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let mut payments = Vec::new();
    for order in fixture.orders(size) {
        let details = fixture.details(&order)?;
        let head = Head::scheduled(&details);
        let put_details = fixture.collector.call(async |store| store.put_details(&details).await).await?;
        let put_head = fixture.collector.call(async |store| store.put_head(&head).await).await?;
        payments.push([put_details, put_head]);
    }
    ensure!(!payments.is_empty(), "no payments to create");
    Ok(Box::pin(send_groups(&fixture.client, payments, AT_ONCE)))
}
