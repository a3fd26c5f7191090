//! Details without a head and without an event: payments that were accepted, and perhaps never acknowledged.

use std::collections::HashSet;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::{Details, HeadKey, UtcSecond};
use payments_store::{MAX_BATCH_GET, Store};

use super::known::Payments;
use super::outcome::{Finding, Line};

/// The parts of the long-term table that are read at once.
const SEGMENTS: u16 = 8;

/// Lists all details that were accepted since an instant and have neither an event nor a head. Reads the whole
/// long-term table.
pub(crate) async fn find(
    store: &Store,
    since: UtcSecond,
    payments: &Payments,
    tell: &impl Fn(&Line),
    progress: &impl Fn(&str, u64, u64),
) -> Result<()> {
    let parts = futures::stream::iter(0..SEGMENTS).map(async |segment| {
        let (mut alone, mut after) = (Vec::new(), None);
        loop {
            let page = store.all_details_page((segment, SEGMENTS), since, after).await?;
            let mut unknown = Vec::new();
            for details in page.details {
                match details {
                    Ok(details) if payments.has_versions(details.payment_id) => {}
                    Ok(details) => unknown.push(details),
                    Err(error) => tell(&Line::place(Finding::Unreadable, error.to_string())),
                }
            }
            alone.extend(without_head(store, unknown).await?);
            after = page.end;
            if after.is_none() {
                return anyhow::Ok(alone);
            }
        }
    });
    let mut parts = parts.buffer_unordered(SEGMENTS.into());
    let mut done = 0;
    while let Some(alone) = parts.try_next().await? {
        done += 1;
        progress("parts of the long-term table", done, SEGMENTS.into());
        for details in alone {
            let why = format!("accepted at {} for {}", details.created_at, details.created_by);
            tell(&Line::finding(Finding::NoEvent, &details.key().guessed_due(), why));
        }
    }
    Ok(())
}

/// The details whose payment has a head in neither table.
async fn without_head(store: &Store, details: Vec<Details>) -> Result<Vec<Details>> {
    let mut alone = Vec::new();
    for some in details.chunks(MAX_BATCH_GET) {
        let keys: Vec<HeadKey> = some.iter().map(Details::key).collect();
        let hot = store.stored_heads(&keys).await?;
        let history = store.settled_heads(&keys).await?;
        let found: HashSet<HeadKey> = hot.into_iter().chain(history).map(|(key, _)| key).collect();
        alone.extend(some.iter().filter(|details| !found.contains(&details.key())).cloned());
    }
    Ok(alone)
}
