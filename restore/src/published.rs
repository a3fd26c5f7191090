//! The log's last versions of the payments that changed since an instant.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use payments_model::{DuePayment, PaymentId, UtcSecond};
use payments_store::{LogHead, LogRead, Store, StoreError};
use serde::Deserialize;

use crate::named::named;

/// The most events and segments of a page.
const PAGE: (usize, u8) = (1_000, 10);

/// The last version of a payment in the log.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// The payment, with its due time at this version.
    pub(crate) payment: DuePayment,
    pub(crate) version: u32,
    /// The account that is paid, if an event names it.
    pub(crate) payee: Option<String>,
}

/// The result of reading the log.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The last version of each payment that changed since the instant, in the earlier epochs.
    pub(crate) changed: Vec<Version>,
    /// The ids of the events that the new epoch already has.
    pub(crate) told: BTreeSet<String>,
    /// The time of the last readable event, if a hole is after it.
    pub(crate) unreadable_since: Option<UtcSecond>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    id: String,
    r#type: String,
    at: String,
    epoch: u32,
    account_id: Option<String>,
    payee_account_id: Option<String>,
    payment_id: Option<String>,
    due_at: Option<String>,
    version: Option<u32>,
}

impl Event {
    fn version(&self) -> Result<Option<(PaymentId, Version)>> {
        let (Some(account), Some(payment), Some(due_at), Some(version)) =
            (&self.account_id, &self.payment_id, &self.due_at, self.version)
        else {
            return Ok(None);
        };
        let payment = named(account, payment, due_at);
        let payment = payment.with_context(|| format!("the event {} names no payment", self.id))?;
        Ok(Some((payment.payment_id, Version { payment, version, payee: self.payee_account_id.clone() })))
    }
}

/// A version with its epoch and number, and its time.
type Placed = ((u32, u32), UtcSecond, Version);

/// Keeps the later version of a payment, and the payee from either event.
fn keep_last(last: &mut BTreeMap<PaymentId, Placed>, payment: PaymentId, mut new: Placed) {
    let Some(before) = last.get_mut(&payment) else {
        last.insert(payment, new);
        return;
    };
    if before.0 > new.0 {
        before.2.payee = before.2.payee.take().or(new.2.payee);
    } else {
        new.2.payee = new.2.payee.take().or(before.2.payee.take());
        *before = new;
    }
}

impl Published {
    /// Reads the log from the day of `since` on.
    pub(crate) async fn read(store: &Store, head: &LogHead, since: UtcSecond, now: UtcSecond) -> Result<Self> {
        let (mut published, mut after) = (Self::default(), head.day_before(since).max(head.start(now)));
        let mut last = BTreeMap::new();
        let mut read_to = since;
        loop {
            let page = match store.log_page(head, after, PAGE.0, PAGE.1, now).await {
                Ok(LogRead::Page(page)) => page,
                Ok(LogRead::Expired(place) | LogRead::Beyond(place)) => {
                    bail!("the log has no place {after}, but {place}")
                }
                // After the hole, only the new epoch is read.
                Err(StoreError::Unreadable { .. }) if after.epoch < head.epoch => {
                    published.unreadable_since = Some(read_to);
                    after = head.start_of_epoch();
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for entry in page.entries {
                let event: Event = serde_json::from_str(&entry.json).context("an event cannot be read")?;
                if event.epoch == head.epoch.get() {
                    published.told.insert(event.id);
                    continue;
                }
                let at: UtcSecond = event.at.parse().with_context(|| format!("the event {} has no time", event.id))?;
                read_to = read_to.max(at);
                if let Some((payment, version)) = event.version()? {
                    // A restore appended the event later than the time of its change.
                    let at = if event.r#type == "payment.restored" { at.max(since) } else { at };
                    keep_last(&mut last, payment, ((event.epoch, version.version), at, version));
                }
            }
            if page.is_end {
                break;
            }
            after = page.after;
        }
        let changed = last.into_values().filter(|(_, at, _)| *at >= since);
        published.changed = changed.map(|(.., version)| version).collect();
        Ok(published)
    }
}
