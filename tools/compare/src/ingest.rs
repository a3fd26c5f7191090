//! Payments put in: a request each, a hundred a request, and the two PutItems of each alone.

use anyhow::{Result, ensure};
use payments_http::HttpFunction;
use payments_load::orders;
use payments_load::settings::MAX_BATCH;
use payments_model::Head;

use crate::bank::Bank;
use crate::calls::send_groups;
use crate::{AT_ONCE, Work};

/// How many batches are under way at once: `ingest` works on sixteen payments of each.
const BATCHES_AT_ONCE: usize = AT_ONCE / 16;

pub(crate) fn singly(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let mut events = Vec::new();
    for order in bank.orders(size) {
        let uri = format!("/accounts/{}/payments", order.account);
        events.push(bank.event("POST", &uri, &order.key, &order.single()?)?);
    }
    Ok(Box::pin(bank.ask(HttpFunction::Ingest, events, AT_ONCE, 201)))
}

pub(crate) fn in_batches(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let mut events = Vec::new();
    for some in bank.orders(size).chunks(usize::try_from(MAX_BATCH)?) {
        events.push(bank.event("POST", "/payment-batches", "", &orders::batch(some)?)?);
    }
    Ok(Box::pin(bank.ask(HttpFunction::Ingest, events, BATCHES_AT_ONCE, 200)))
}

pub(crate) async fn barely(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let mut payments = Vec::new();
    for order in bank.orders(size) {
        let details = bank.details(&order)?;
        let head = Head::scheduled(&details);
        let put_details = bank.recorder.call(async |store| store.put_details(&details).await).await?;
        let put_head = bank.recorder.call(async |store| store.put_head(&head).await).await?;
        payments.push([put_details, put_head]);
    }
    ensure!(!payments.is_empty(), "nothing to put in");
    Ok(Box::pin(send_groups(&bank.client, payments, AT_ONCE)))
}
